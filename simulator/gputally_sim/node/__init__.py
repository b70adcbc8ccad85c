"""Nodes: kubelets, GPUs, and the pods that hold them."""
