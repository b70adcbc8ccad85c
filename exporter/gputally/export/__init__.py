"""What leaves the process: text formats and the HTTP server."""
