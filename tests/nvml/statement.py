"""The words of a script's lines."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final, overload

US: Final = 1_000_000
LONG_AGO_US: Final = -(10**15)
"""Before the origin: some thirty years."""

Seconds = int | float | Fraction
Percent = int | float | Fraction
Curve = Sequence[tuple[Seconds, Percent]]
"""Percent from each instant on; 0 before the first, and the last one holds. Thousandths of a percent are the finest."""


def optional(keyword: str, value: int | Sequence[int] | None) -> Iterator[str]:
    if value is not None:
        yield f"{keyword} {value if isinstance(value, int) else joined(value)}"


def joined(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))


def load(curve: Curve) -> Iterator[str]:
    return (f"load {micro(at)} {decimal(percent)}" for at, percent in curve)


def span(start: Seconds | None, end: Seconds | None) -> str:
    """Nothing, a start, or both: what has an end alone has lasted for ever."""
    if end is None:
        return "" if start is None else f" {micro(start)}"
    return f" {LONG_AGO_US if start is None else micro(start)} {micro(end)}"


@overload
def micro(at: Seconds) -> int: ...
@overload
def micro(at: None) -> None: ...
def micro(at: Seconds | None) -> int | None:
    return None if at is None else round(Fraction(at) * US)


@overload
def milli(value: Seconds) -> int: ...
@overload
def milli(value: None) -> None: ...
def milli(value: Seconds | None) -> int | None:
    return None if value is None else round(Fraction(value) * 1000)


def decimal(value: Seconds) -> str:
    thousandths = milli(value)
    return f"{thousandths // 1000}.{thousandths % 1000:03}"
