"""Maintenance of ledger files: read, check, query, copy and restore them."""
