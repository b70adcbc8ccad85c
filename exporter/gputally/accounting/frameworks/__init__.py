"""The groups that frameworks and schedulers declare, and which of them are gangs."""
