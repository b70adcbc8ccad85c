"""Pods that lost their GPUs involuntarily: causes, steps and what their nodes show."""
