"""Answers about the present, without HTTP: why pods wait, what would help, what fits, what is allocated or at risk."""
