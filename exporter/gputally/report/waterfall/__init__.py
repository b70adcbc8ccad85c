"""Waterfalls: what became of all GPUs, from capacity to jobs that succeeded."""
