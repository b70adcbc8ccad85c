"""`gputally explain`: from a number of a report to its allocations."""
