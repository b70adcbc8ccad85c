"""The aggregator: tasks and wiring. Nothing here knows the domain."""
