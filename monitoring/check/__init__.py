"""Checks of what users load: the generated dashboards and rules, their runbooks and tests, against the catalog."""
