"""Pods that lost their GPUs involuntarily."""
