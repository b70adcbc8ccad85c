"""Periods, dimensions of time and named hours of reports."""
