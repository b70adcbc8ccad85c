"""Files that may change while the process runs."""
