"""Price books: what operators write of prices, read strictly."""
