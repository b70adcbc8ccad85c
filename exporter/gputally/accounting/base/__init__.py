"""What all parts of the accounting stand on: their interface, limits, coverage and shared values."""
