"""How to reach an API server, and how to prove to it who we are."""
