"""List and watch one resource, across broken connections."""
