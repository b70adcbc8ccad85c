"""Output of the process: text formats and the HTTP server."""
