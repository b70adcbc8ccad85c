"""The Kubernetes API: connection, requests, discovery, lists, watches, owners and server time."""
