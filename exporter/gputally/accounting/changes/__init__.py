"""What the accounting passes to the ledger."""
