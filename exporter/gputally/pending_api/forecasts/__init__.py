"""What would happen to pods that do not exist yet."""
