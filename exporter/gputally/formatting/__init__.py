"""How values are shown: amounts in words, tables as text, Markdown, CSV and JSON, and HTML pages."""
