"""Frozen structs of the field: what the API says, what is allocated, what it costs. No behaviour beyond invariants."""
