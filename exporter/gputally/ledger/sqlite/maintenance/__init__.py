"""What administrators do with a ledger file: inspect, query, back up and restore it."""
