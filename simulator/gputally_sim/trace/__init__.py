"""Recorded workloads, read from files and replayed."""
