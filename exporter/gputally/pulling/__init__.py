"""The agents of the nodes: what each measured is pulled from it over HTTP."""
