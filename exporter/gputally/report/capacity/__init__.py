"""What nodes offered, at which price."""
