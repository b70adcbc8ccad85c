"""What commands do with a ledger that they read: each module is the body of the command of its name."""
