"""Waits for GPUs as rows: of pods, and of workloads whose pods do not exist."""
