"""History from before the installation: jobs of other systems, in a ledger of their own."""
