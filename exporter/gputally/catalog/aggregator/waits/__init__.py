"""Why pods wait: the reasons, and how current they are."""
