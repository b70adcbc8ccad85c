"""The section `budgets` of the configuration."""
