"""Labels of rows of numbers: a storage knows texts, terms and prices by number.

A row has the values of some dimensions of pods and revisions, then terms, price and period. The job may be apart: rows
differ most by it, and what jobs share is then looked up once for all of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from gputally.ledger.records import DIMENSIONS
from gputally.model.price import Price

Numbers = tuple[Any, ...]
Key = tuple[tuple[str, ...], Price | None, int]
"""Labels, price and period."""
JOB_NAME: Final = "job"
POD_NAME: Final = "name"
"""The only dimension of pods and revisions that is stored as a text."""
OF_TERMS: Final = DIMENSIONS[DIMENSIONS.index("resource") :]
"""The dimensions of terms; the others are those of pods and revisions."""


class Meanings(Protocol):
    """What the numbers of a storage mean."""

    def term(self, number: int) -> Mapping[str, str]:
        """The values of terms by dimension."""

    def prices(self) -> Mapping[int, Price]:
        """All prices by number."""

    def texts(self, numbers: Iterable[int]) -> Mapping[int, str]:
        """The texts with these numbers."""


class RowLabels:
    """Names rows with the dimensions `shared`, and the `jobs` that are apart. Texts are looked up once."""

    def __init__(
        self, meanings: Meanings, shared: Sequence[str], *, rows: Iterable[Numbers], jobs: Iterable[int]
    ) -> None:
        self._places = {each: place for place, each in enumerate(shared)}
        places = [place for place, each in enumerate(shared) if each != POD_NAME]
        self._texts = meanings.texts({*jobs, *(row[place] for row in rows for place in places)})
        self._prices = meanings.prices()
        self._term = meanings.term

    def key(self, row: Numbers, by: Sequence[str]) -> Key:
        """The labels `by`, price and period of a row; "" for a job that is apart."""
        *values, term, price, period = row
        terms = self._term(term)
        return tuple(self._label(each, values, terms) for each in by), self._prices.get(price), period

    def of_jobs(self, labels: tuple[str, ...], by: Sequence[str], jobs: Iterable[int]) -> Iterator[tuple[str, ...]]:
        """The labels of each of these jobs; without the dimension of the job, the same for all."""
        if JOB_NAME not in by:
            return (labels for _ in jobs)
        place, texts = by.index(JOB_NAME), self._texts
        before, after = labels[:place], labels[place + 1 :]
        return ((*before, texts[job], *after) for job in jobs)

    def _label(self, name: str, values: Sequence[Any], terms: Mapping[str, str]) -> str:
        if name not in self._places:
            return "" if name == JOB_NAME else terms[name]
        value = values[self._places[name]]
        return str(value) if name == POD_NAME else self._texts[value]
