"""How long pods waited for GPUs, for what, and who held these."""
