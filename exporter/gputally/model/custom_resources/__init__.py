"""Objects that schedulers declare, decoded from JSON."""
