"""The aggregator: a module for each task, and how they are connected, without domain logic."""
