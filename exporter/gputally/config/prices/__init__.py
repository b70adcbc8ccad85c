"""Price books: the files that operators write, read and validated."""
