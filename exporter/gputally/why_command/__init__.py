"""`gputally why` and `gputally what-if`: why pods wait, and what would happen to others."""
