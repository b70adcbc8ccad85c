"""Frozen structs of the domain: API objects, allocations, prices, verdicts. No behaviour beyond invariants.

They contain no cycles, so garbage collection is off for them (`gc=False`): a restart loads pods three times as fast.
"""
