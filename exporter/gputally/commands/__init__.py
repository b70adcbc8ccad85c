"""The commands of `gputally`: one module for each, with its flags, and what several of them share."""
