"""Jobs: how they end, and the GPU-time that counts then."""
