"""Workloads of queue systems: which were evicted, and for which others."""
