"""PriorityClasses over time, and GPU quotas."""
