"""Asks every question of every surface, and finds the differences."""

from collections.abc import AsyncIterator, Iterable
from decimal import Decimal
from typing import NamedTuple

from tests.surfaces.answer import Answer, Key, Question
from tests.surfaces.book import Book


class Compared(NamedTuple):
    """What one surface answers, beside the first one that is asked."""

    question: str
    surface: str
    first: str
    shown: Answer
    expected: Answer

    @property
    def differences(self) -> dict[Key, Decimal]:
        """How much more this surface shows, by key, where rounding does not explain it."""
        slack = self.shown.exact_to + self.expected.exact_to
        keys = self.shown.amounts.keys() | self.expected.amounts.keys()
        zero = Decimal()
        more = {key: self.shown.amounts.get(key, zero) - self.expected.amounts.get(key, zero) for key in sorted(keys)}
        return {key: each for key, each in more.items() if abs(each) > slack}

    @property
    def line(self) -> str:
        """A line of a table for people."""
        largest = max(self.differences.values(), key=abs, default=Decimal())
        total = sum(self.expected.amounts.values(), Decimal())
        sums = f"{total:>16.6f} {sum(self.shown.amounts.values(), Decimal()) - total:>+14.6f} {largest:>+14.6f}"
        return f"{self.question:<62}{self.surface:<24}{len(self.shown.amounts):>5}{sums}"

    def __str__(self) -> str:
        sums = ", ".join(f"{'/'.join(key) or 'in all'} {more:+.9f}" for key, more in self.differences.items())
        return f"{self.question}: {self.surface} differs from {self.first}: {sums}"


async def compare(book: Book, questions: Iterable[Question]) -> list[Compared]:
    """Every surface beside the first one of its question."""
    return [each for question in questions async for each in _asked(book, question)]


async def _asked(book: Book, question: Question) -> AsyncIterator[Compared]:
    (first, ask), *others = question.surfaces.items()
    expected = await ask(book)
    for surface, reader in others:
        yield Compared(question.name, surface, first, await reader(book), expected)
