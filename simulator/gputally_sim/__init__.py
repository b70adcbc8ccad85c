"""A deterministic, time-compressed Kubernetes cluster behind a small real HTTP API.

Objects are plain JSON documents in the API server's format. Everything that happens is an action on one agenda, ordered
by simulated time, so a seed determines every name, uid and decision at any speed.
"""
