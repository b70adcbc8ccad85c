"""Workloads whose pods with GPUs do not exist: a quota or admission refuses them, or a queue holds them back."""
