"""What waits are charged: their terms, their prices, and each second to one cause."""
