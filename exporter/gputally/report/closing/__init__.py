"""Closing a period: its lines, hashes and corrections."""
