"""Kubernetes objects as decoded from JSON, by kind: only the fields that are read; msgspec skips all others."""
