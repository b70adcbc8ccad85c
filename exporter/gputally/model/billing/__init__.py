"""Calendar periods, and which of them are closed."""
