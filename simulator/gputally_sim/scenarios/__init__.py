"""Scenarios: what users and operators do in the simulated cluster."""
