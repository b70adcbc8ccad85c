"""What waits cost, as far as prices are known."""
