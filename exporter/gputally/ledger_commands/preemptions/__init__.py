"""`gputally preemptions`: who lost GPUs to whom, and what followed."""
