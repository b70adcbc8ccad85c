"""Responses of the aggregator's HTTP API, one module for each path."""
