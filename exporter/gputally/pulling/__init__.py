"""Pull usage reports from the node agents over HTTP."""
