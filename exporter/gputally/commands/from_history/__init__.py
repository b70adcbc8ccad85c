"""What `gputally import` does: it reads past jobs from a file, or past pods from a Prometheus, into a ledger."""
