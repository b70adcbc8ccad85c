"""The series of the aggregator."""
