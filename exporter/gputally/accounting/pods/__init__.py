"""Pods that ask for GPUs: when they held them, and as which segments."""
