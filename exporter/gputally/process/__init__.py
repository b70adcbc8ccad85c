"""Shared by all processes: the clock, logging, and periodic tasks."""
