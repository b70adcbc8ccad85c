"""Data sources of the node agent: the NVIDIA driver and the kubelet."""
