"""Accounting of the node agent: GPU-time, usage and energy by container and by GPU state."""
