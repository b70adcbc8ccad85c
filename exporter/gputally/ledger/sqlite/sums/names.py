"""The texts, terms and prices that rows name by number."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import json

from gputally.ledger.price_columns import PRICE, price_of
from gputally.ledger.sqlite import queries
from gputally.ledger.sqlite.segment_rows import TERMS, Row
from gputally.model.allocation import Outcome
from gputally.model.price import Price

Rows = Callable[[str, Mapping[str, Any]], Sequence[Row]]
"""Runs a statement with these parameters, in one transaction."""
Key = tuple[Row, Price | None, int]
"""Labels, price and period."""
POD_NAME: Final = "name"
"""The only dimension of pods and revisions that is stored as a text."""

_ALL_TERMS: Final = f"SELECT id, {', '.join(TERMS)} FROM terms"  # noqa: S608 (literals only)
_ALL_PRICES: Final = f"SELECT id, price_key, {', '.join(PRICE)} FROM prices"  # noqa: S608 (literals only)
_NUMBERS: Final = "SELECT text, id FROM texts WHERE text IN (SELECT value FROM json_each(:texts))"


class Names:
    """Names rows of numbers: the values of `own`, dimensions of pods and revisions, then terms, price and period."""

    def __init__(self, rows: Rows, own: Sequence[str]) -> None:
        self.own = own
        self._rows = rows
        self._terms: dict[int, Mapping[str, str]] = {}
        self._texts: dict[int, str] = {}
        self._prices: dict[int, Price] = {}

    def term(self, number: int) -> Mapping[str, str]:
        """The values of TERMS, which may have been written during the read."""
        if number not in self._terms:
            self._terms = {each: dict(zip(TERMS, row, strict=True)) for each, *row in self._rows(_ALL_TERMS, {})}
        return self._terms[number]

    def numbers(self, texts: Iterable[str]) -> dict[str, int]:
        """The numbers of those texts that have one."""
        return dict(self._rows(_NUMBERS, {"texts": json.encode(list(texts)).decode()}))

    def load(self, rows: Iterable[Row]) -> None:
        """Load the texts and prices of these rows."""
        places = [place for place, each in enumerate(self.own) if each != POD_NAME]
        ids = json.encode(list({row[place] for row in rows for place in places})).decode()
        self._texts = {0: Outcome.UNKNOWN.value, **dict(self._rows(queries.TEXTS, {"ids": ids}))}
        self._prices = {number: price_of(*price) for number, *price in self._rows(_ALL_PRICES, {})}

    def key(self, row: Row, by: Sequence[str]) -> Key:
        """The labels `by`, price and period of a row; its names are loaded."""
        *values, term, price, period = row
        texts, terms = self._texts, self.term(term)
        own = {each: v if each == POD_NAME else texts[v] for each, v in zip(self.own, values, strict=True)}
        return tuple(own[each] if each in own else terms[each] for each in by), self._prices.get(price), period
