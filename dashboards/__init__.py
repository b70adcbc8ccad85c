"""One file per dashboard, each with a BOARD; `make generate` writes them as JSON to `generated/`."""
