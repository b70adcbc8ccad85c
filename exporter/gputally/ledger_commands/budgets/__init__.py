"""The command `gputally budgets`."""
