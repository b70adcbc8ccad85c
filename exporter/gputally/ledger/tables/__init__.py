"""The tables of a ledger, declared once: rows, statements, new files and the documentation derive from them.

Times are µs since the epoch (UTC), quantities µGPU. Columns named like another table, or that end in _text, are
numbers of its rows or of `texts`.
"""
