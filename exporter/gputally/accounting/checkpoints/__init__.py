"""The last checkpoints of pods, as they state or declare them."""
