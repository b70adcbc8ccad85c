"""What fits on the nodes, and how the pods of jobs are spread over them."""
