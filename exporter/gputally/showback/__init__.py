"""`gputally showback`: the report of each tenant, from an aggregator to files or a webhook."""
