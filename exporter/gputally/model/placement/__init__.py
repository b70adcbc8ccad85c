"""Where pods may run: what they need, what nodes offer, and why they wait."""
