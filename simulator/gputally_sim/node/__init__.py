"""Nodes: kubelets, GPUs, and the pods that have them."""
