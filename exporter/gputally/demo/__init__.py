"""The aggregator on a simulated cluster."""
