"""`gputally posture`: reads a cluster or manifests, and writes their preemption posture."""
