"""The node agent: starts and connects its tasks; contains no accounting logic."""
