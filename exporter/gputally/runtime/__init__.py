"""Wiring only: tasks, signals, settings. Nothing here knows the domain."""
