"""Questions: each is a struct, whose declaration yields flags of a command, parameters of HTTP, and their checks."""
