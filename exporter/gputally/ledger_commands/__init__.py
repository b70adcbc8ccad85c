"""The commands that inspect, back up and restore ledgers."""
