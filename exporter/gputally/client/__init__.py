"""Requests over HTTP: to a running aggregator, and of documents to webhooks."""
