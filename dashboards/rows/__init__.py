"""Rows of dashboards that are too long for one file."""
