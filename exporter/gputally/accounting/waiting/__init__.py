"""Pods that wait for GPUs: what is free, why each pod waits, and what its wait is charged to."""
