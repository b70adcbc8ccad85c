"""How much of a physical GPU a pod has: one file for each way to share GPUs, which `schemes` puts together."""
