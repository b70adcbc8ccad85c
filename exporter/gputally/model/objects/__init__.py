"""Parts of Kubernetes objects, as decoded from JSON."""
