"""Tasks of the aggregator that settings or the configuration turn on."""
