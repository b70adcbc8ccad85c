"""Commands for those who work on gputally; nothing here is installed."""
