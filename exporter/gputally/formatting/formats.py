"""The formats of answers."""

from typing import Final

FORMATS: Final = ("table", "markdown", "html", "csv", "json")
"""Each answer has all of them, the usual one first."""
PLACES: Final = {"table": 2, "markdown": 2, "html": 2, "csv": 6, "json": 6}
"""The usual decimals of amounts, by format."""
FILE_FORMATS: Final = {"html": "html", "markdown": "md", "csv": "csv"}
"""Formats of files with the report of a tenant, with their extensions."""


def places(output: str, decimals: int | None) -> int:
    """The decimals of amounts in this format, unless a number of them is asked for."""
    return PLACES[output] if decimals is None else decimals
