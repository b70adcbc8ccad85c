"""What pods and nodes of the API need and offer."""
