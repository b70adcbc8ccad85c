"""The control plane: scheduler, controllers, and the Events they write."""
