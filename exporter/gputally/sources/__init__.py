"""What is read from outside: the Kubernetes API by list and watch, and the agents."""
