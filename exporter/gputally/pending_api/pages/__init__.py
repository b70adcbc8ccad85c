"""Pages about waiting pods, which need no JavaScript."""
