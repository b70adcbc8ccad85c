"""What the operator writes: configuration and price books, read strictly and refused with all problems at once."""
