"""Measurements of agents: devices and their assignments, usage reports, and stored usage."""
