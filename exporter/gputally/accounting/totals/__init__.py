"""Counters: exact sums by label group that never decrease once published."""
