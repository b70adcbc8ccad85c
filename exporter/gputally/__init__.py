"""Exact GPU accounting for Kubernetes."""

__version__ = "0.1.0"
