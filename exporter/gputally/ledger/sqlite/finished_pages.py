"""Adds up pages of pods that have ended, in small transactions, and withdraws the sums of pages that change again."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from gputally.ledger.page_groups import encoded
from gputally.ledger.sqlite import summed_pages
from gputally.ledger.sqlite.pod_days import LASTING
from gputally.ledger.sqlite.summed_pages import computed, pods_of
from gputally.ledger.tables.allocations import PAGE_SUMS, SUMMED_PAGES
from gputally.ledger.tables.statements import delete, insert

_MOST_LEFT_OUT: Final = 0.1
"""Part of a page's pods that may not have ended."""
_FULL: Final = "SELECT ifnull(min(id), 1) - 1, ifnull(max(id), 0) FROM pods"
_COUNT: Final = "SELECT count(*) FROM pods WHERE id > :after AND id <= :upto"
_LASTING: Final = f"SELECT pod FROM pod_days WHERE day = {LASTING} AND pod > :after AND pod <= :upto ORDER BY pod"  # noqa: S608 (numbers only)
_SUMMED: Final = "SELECT page, left_out FROM summed_pages"
_WITHDRAW: Final = (delete(PAGE_SUMS, "page"), delete(SUMMED_PAGES))
_MARK: Final = """
INSERT INTO meta VALUES ('withdrawn_sums', '1')
ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)
"""
"""For readers that have read a part of these sums."""


class FinishedPages:
    """The pages with sums, through one connection; the caller manages transactions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._left_out: dict[int, frozenset[int]] | None = None
        """The pods that the sums of each page leave out; None if not known."""

    def forget(self) -> None:
        """The transaction was rolled back."""
        self._left_out = None

    def withdraw(self, pods: Iterable[int]) -> None:
        """Delete the sums that count one of these pods, which change in this transaction."""
        known = self._known()
        for pod in pods if known else ():
            page = (pod - 1) // summed_pages.PAGE
            if page in known and pod not in known[page]:
                self._delete(page)

    def steps(self, transaction: Callable[[], AbstractContextManager[None]]) -> Iterator[int]:
        """Add up a page in each step, in a transaction of its own; yields how many pods were added up so far."""
        first, last = self._connection.execute(_FULL).fetchone()
        pods = 0
        for page in range(first // summed_pages.PAGE, last // summed_pages.PAGE):
            lasting = [pod for (pod,) in self._connection.execute(_LASTING, pods_of(page))]
            if self._is_due(page, len(lasting)):
                with transaction():
                    self._store(page, lasting)
                pods += summed_pages.PAGE - len(lasting)
                yield pods

    def _is_due(self, page: int, lasting: int) -> bool:
        """Whether it has no sums and most pods have ended, or at least half of those that its sums left out."""
        left_out = self._known().get(page)
        if left_out is not None:
            return bool(left_out) and 2 * lasting <= len(left_out)
        [pods] = self._connection.execute(_COUNT, pods_of(page)).fetchone()
        return bool(pods) and lasting <= _MOST_LEFT_OUT * pods

    def _store(self, page: int, left_out: list[int]) -> None:
        known, text = self._known(), json.dumps(left_out)
        if page in known:
            self._delete(page)
        days = computed(self._connection.execute, page, text)
        sums = [(page, day, encoded(groups)) for day, groups in sorted(days.items())]
        self._connection.execute(insert(SUMMED_PAGES), (page, text))
        self._connection.executemany(insert(PAGE_SUMS), sums)
        known[page] = frozenset(left_out)

    def _delete(self, page: int) -> None:
        for sql in _WITHDRAW:
            self._connection.execute(sql, (page,))
        self._connection.execute(_MARK)
        del self._known()[page]

    def _known(self) -> dict[int, frozenset[int]]:
        if self._left_out is None:
            rows = self._connection.execute(_SUMMED)
            self._left_out = {page: frozenset(json.loads(left_out)) for page, left_out in rows}
        return self._left_out
