"""The aggregator's HTTP API: its paths, and the response of each in a module of its own."""
