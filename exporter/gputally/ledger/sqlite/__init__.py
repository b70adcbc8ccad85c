"""The ledger in one SQLite file: `writer` and `reader` use one module for each kind of rows.

`file` opens it with the current `schema`; `integrity`, `backup`, `restore`, `info` and `query` serve operators.
`retention` rolls allocations that ended long ago up into `daily_rows`.
"""
