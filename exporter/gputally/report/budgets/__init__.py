"""Budgets: what is spent, what is forecast, and rows for people."""
