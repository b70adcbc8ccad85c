"""The commands of `gputally`: a module of flags for each; what a command does lies in a package by its source."""
