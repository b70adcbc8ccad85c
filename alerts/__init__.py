"""One file per subject, each with a GROUP of rules; `make generate` writes them as YAML to `generated/`."""
