"""What the node agent reads: the NVIDIA driver and the kubelet."""
