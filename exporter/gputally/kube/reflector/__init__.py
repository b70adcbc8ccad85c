"""List and watch: one resource at a time, for ever, through broken connections."""
