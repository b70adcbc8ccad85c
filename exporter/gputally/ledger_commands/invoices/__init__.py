"""`gputally periods`: closed periods and their invoices."""
