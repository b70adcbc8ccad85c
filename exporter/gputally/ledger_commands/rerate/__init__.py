"""`gputally rerate`: what a period costs by another price book."""
