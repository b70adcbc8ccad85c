"""What GPUs of one node were used for, and by which containers: the books of the node agent."""
