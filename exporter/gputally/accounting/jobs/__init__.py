"""Jobs: how they end, the GPU-time that counts then, their cost, progress and checkpoints."""
