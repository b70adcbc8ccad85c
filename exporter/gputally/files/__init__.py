"""Files that others replace while we run: credentials, and what says who may come in."""
