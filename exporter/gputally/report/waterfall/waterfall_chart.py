"""How a waterfall is drawn: the names of its rows, and their bars."""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final, NamedTuple

from gputally.report.waterfall.waterfall_parts import NOT_LOST, SINCE_START, SUCCEEDED

_NAMES: Final = {
    (NOT_LOST, SINCE_START): "lost since start, at most",
    (SUCCEEDED, ""): "in jobs that succeeded",
    (SUCCEEDED, "running"): "still running",
    (SUCCEEDED, "unknown"): "unknown outcome",
}


class Bar(NamedTuple):
    """Where the bar of a row begins and how long it is, in percent of the first step."""

    begin: Decimal
    length: Decimal


def name_of(step: str, cause: str) -> str:
    """A step, or a difference that leads to it, for people."""
    return _NAMES.get((step, cause), (cause or step).replace("_", " "))


def bars(rows: Iterable[tuple[str, Decimal]]) -> Iterator[Bar]:
    """For each cause and share: a step begins at 0, a difference lies between what was before and what is after it."""
    at = Decimal()
    for cause, share in rows:
        after = at + share if cause else share
        yield Bar(min(at, after), abs(share)) if cause else Bar(Decimal(), share)
        at = after
