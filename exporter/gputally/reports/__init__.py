"""Reports on any period: pure functions over a ledger's reader, with exact sums that are rounded only when shown."""
