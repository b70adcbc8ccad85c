"""What would help pods that wait."""
