"""The work that preemptions destroy, and the work that they could destroy now."""
