"""What preemptions destroyed and what they bought."""
