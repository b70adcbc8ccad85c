"""Nodes: the GPUs that they offer, since when, and the states of their capacity."""
