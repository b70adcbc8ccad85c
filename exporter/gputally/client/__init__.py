"""Requests over HTTP: what commands ask a running aggregator, and documents posted to webhooks."""
