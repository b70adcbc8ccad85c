"""What a GPU-hour costs, and when that changes."""
