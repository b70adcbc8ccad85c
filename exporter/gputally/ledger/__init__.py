"""The durable record of all allocations: append-only, one writer, exact."""
