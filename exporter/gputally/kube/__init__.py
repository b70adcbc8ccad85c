"""The Kubernetes API: what it serves where, how it fails, what time it has, and what is watched."""
