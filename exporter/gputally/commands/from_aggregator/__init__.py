"""What commands do that ask a running aggregator: each module is the body of the command of its name."""
