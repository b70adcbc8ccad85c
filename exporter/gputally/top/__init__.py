"""`gputally top`: who holds which GPUs now, and what that costs per hour."""
