"""Places of pods in a copy of the room."""
