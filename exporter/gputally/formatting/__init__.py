"""How values are shown: amounts and times in words, tables as text, Markdown, CSV and JSON, and HTML pages."""
