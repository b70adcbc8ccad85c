"""Configuration and price books: strict parsing that reports all problems at once."""
