"""What every process of ours has: a clock, a log, and what is done again and again."""
