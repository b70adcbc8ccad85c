"""One file a subject, each with a GROUP of rules; `make generate` writes them as YAML below `generated/`."""
