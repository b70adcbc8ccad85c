"""Expositions of metrics: the text formats, their negotiation, and the restriction to tenants."""
