"""Rows and sums of the work that preemptions destroyed, and of the pods that had their GPUs next."""
