"""The state of the fleet: one writer of all parts, its snapshots, and its restart from what was saved."""
