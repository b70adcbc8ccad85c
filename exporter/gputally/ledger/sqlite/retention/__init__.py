"""Rolls ended allocations and their usage up into daily rows, and gives the space back."""
