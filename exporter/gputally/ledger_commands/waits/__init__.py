"""`gputally waits` and its formats."""
