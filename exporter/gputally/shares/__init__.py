"""The share of a physical GPU that a pod has: one module for each sharing scheme, combined by `schemes`."""
