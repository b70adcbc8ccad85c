"""GPU readings of this node from the NVIDIA driver, through NVML."""
