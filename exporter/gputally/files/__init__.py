"""Files that may change while the process runs: credentials and the web configuration."""
