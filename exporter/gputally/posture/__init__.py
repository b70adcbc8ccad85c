"""Who may preempt whom in a cluster, and what is wrong with that policy; pure."""
