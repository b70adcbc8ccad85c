"""The terms of an allocation: tier, tenant, job and its other labels."""
