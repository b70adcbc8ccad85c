"""Commands for contributors to gputally; nothing here is installed."""
