"""`/api/v1/pending`, `/api/v1/why` and `/api/v1/what-if`: why pods wait, over HTTP."""
