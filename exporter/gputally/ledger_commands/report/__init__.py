"""`gputally report` and its formats."""
