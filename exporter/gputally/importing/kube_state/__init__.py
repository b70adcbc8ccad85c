"""Pods of the past, from a Prometheus that has scraped kube-state-metrics."""
