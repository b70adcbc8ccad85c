"""Workloads whose pods do not exist, in words and as documents."""
