"""What the NVIDIA driver tells of this node's GPUs, by NVML."""
