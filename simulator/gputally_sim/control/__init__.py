"""The control plane: scheduler, controllers, and their Events."""
