"""One record for each preemption of a job: who, by which rule, what it cost, and what would have helped."""
