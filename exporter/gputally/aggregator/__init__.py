"""The aggregator: tasks and wiring, without domain logic."""
