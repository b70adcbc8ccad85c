"""JSON documents of what is so now."""
