"""The work of pods: up to when it is saved, and what of it preemptions destroyed."""
