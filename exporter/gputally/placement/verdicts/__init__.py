"""The parts of a verdict: the nodes, the obstacles on one of them, gangs."""
