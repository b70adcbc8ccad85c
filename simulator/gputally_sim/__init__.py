"""A deterministic, time-compressed Kubernetes cluster behind a small real HTTP API.

Its objects are plain JSON documents shaped as the API server's. All that happens in it is an action on one agenda
ordered by model time, so a seed fixes every name, uid and decision at any wall speed.
"""
