"""Nodes: kubelets, GPUs, and their allocation to pods."""
