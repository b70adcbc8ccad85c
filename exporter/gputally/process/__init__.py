"""The process of a command: its settings, clock, log and end."""
