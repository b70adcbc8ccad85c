"""`/api/v1/report`: reports from the ledger over HTTP."""
