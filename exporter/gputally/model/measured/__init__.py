"""What agents measure: devices and who holds them, what is served of it, and what is kept of it."""
