"""Every series, declared once: exposition, documentation and checks derive from these declarations."""
