"""The simulated API server: objects, verbs, lists and watches over HTTP."""
