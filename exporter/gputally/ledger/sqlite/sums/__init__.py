"""Sums of allocated and measured time by dimensions and periods."""
