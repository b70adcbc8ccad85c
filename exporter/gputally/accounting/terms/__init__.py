"""Under which terms a pod holds its GPUs: tier, tenant, job and what else its allocation is labelled with."""
