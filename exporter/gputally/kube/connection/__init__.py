"""How to reach an API server and log in."""
