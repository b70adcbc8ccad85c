"""The agent of a node: tasks and wiring. Nothing here knows the domain."""
