"""Nodes: what they offer, since when, and what becomes of their capacity."""
