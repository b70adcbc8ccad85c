"""Another price book for a period of the past."""
