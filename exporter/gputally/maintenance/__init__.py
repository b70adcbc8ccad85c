"""The commands `gputally ledger`, `gputally backup` and `gputally restore`."""
