"""Pods that request GPUs: when they hold them, and as which segments."""
