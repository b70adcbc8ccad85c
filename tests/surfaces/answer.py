"""An answer of a surface: amounts by their labels, and how exactly they are shown."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple

from tests.surfaces.book import Book

Key = tuple[str, ...]


class Answer(NamedTuple):
    """Amounts by key, without zeros. Each is shown to within `exact_to`, as surfaces round."""

    amounts: Mapping[Key, Decimal]
    exact_to: Decimal


Reader = Callable[[Book], Awaitable[Answer]]
"""Asks a surface, and returns what it shows."""


def answer(found: Iterable[tuple[Key, Decimal]], *, exact_to: str) -> Answer:
    """The sums by key of amounts that are each shown with this resolution."""
    sums, counts = defaultdict[Key, Decimal](Decimal), Counter[Key]()
    for key, amount in found:
        sums[key] += amount
        counts[key] += 1
    shown = {key: amount for key, amount in sums.items() if amount}
    return Answer(shown, Decimal(exact_to) * max(counts.values(), default=1))


class Question(NamedTuple):
    """A question, and how each surface answers it."""

    name: str
    surfaces: Mapping[str, Reader]
