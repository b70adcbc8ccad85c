"""One file a dashboard, each with a BOARD; `make generate` writes them as JSON below `generated/`."""
