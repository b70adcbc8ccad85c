"""Where pods with GPUs fit, and why they do not: pure functions over what nodes offer and pods take."""
