"""Counters: exact sums by label group that never fall when they are published."""
