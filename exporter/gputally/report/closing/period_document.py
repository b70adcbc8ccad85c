"""Closed periods as JSON: all that their hashes cover, in that order."""

from typing import Any, Final

from msgspec import json

from gputally.ledger.closed_period import LINE_COLUMNS, PERIOD_COLUMNS, ClosedPeriod, line_of

VERSION: Final = 1
"""Raised when a field is removed or changes its meaning; new fields do not change it."""


def document_of(period: ClosedPeriod) -> dict[str, Any]:
    """The document; GPU-time is text."""
    lines = [dict(zip(LINE_COLUMNS, line.fields, strict=True)) for line in period.lines]
    return {"version": VERSION, "period": header_of(period), "lines": lines}


def header_of(period: ClosedPeriod) -> dict[str, Any]:
    """The period without its lines."""
    return dict(zip(PERIOD_COLUMNS, period.fields, strict=True)) | {"hash": period.hash}


def period_in(document: bytes) -> ClosedPeriod:
    """The period of an encoded document."""
    content: dict[str, Any] = json.decode(document)
    lines = (line_of([line[name] for name in LINE_COLUMNS]) for line in content["lines"])
    return ClosedPeriod(**content["period"], lines=tuple(lines))
