"""The Kubernetes API: requests, discovery, errors, server time and the table of watched resources."""
