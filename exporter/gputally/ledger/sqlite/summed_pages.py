"""Sums of pages of pods that have ended, by day (UTC): reports read them instead of the segments.

A page has `PAGE` pods with consecutive numbers. Its sums leave out the pods that had not ended: reports read the
segments of these, and all segments of what a window has besides whole days. Pages are added up in small transactions,
and the sums of a page are withdrawn in the transaction that changes one of its other pods.
"""

import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from typing import Any, Final, NamedTuple

from msgspec import json

from gputally.ledger.page_groups import Group, decoded, encoded, groups_by_day
from gputally.ledger.records import Window
from gputally.ledger.sqlite.pod_days import IN_WINDOW, LASTING
from gputally.ledger.sqlite.rows import Row, Rows
from gputally.ledger.sqlite.segment_pages import Pages, last_pod, numbered, segments_of
from gputally.ledger.tables.allocations import PAGE_SUMS, SUMMED_PAGES
from gputally.ledger.tables.statements import delete, insert
from gputally.model.units import US_PER_DAY

PAGE = 5_000
"""Pods of a page, which the file's rows depend on."""
_MOST_RESTS: Final = 3
"""Parts of a window without whole days, from which on it is read from segments: each part reads pages of its own."""
_ALL_TIME: Final = {"start": -(1 << 62), "end": 1 << 62, "accounted": 0}
_SUMMED: Final = "SELECT page, left_out FROM summed_pages"
_OF_DAY: Final = "SELECT page, sums FROM page_sums WHERE day = :day"
_LEFT_OUT: Final = "SELECT left_out FROM summed_pages WHERE page = ?"
_OF_PAGE: Final = "SELECT day, sums FROM page_sums WHERE page = ?"
_LISTED: Final = "SELECT value FROM json_each(:pods)"
_BUT: Final = """
SELECT id FROM pods WHERE id > :after AND id <= :upto AND id NOT IN (SELECT value FROM json_each(:left_out))
"""
_SPANS: Final = segments_of(_BUT, (), with_jobs=True)
_PODS: Final = json.Decoder(list[int])


class StoredSums(NamedTuple):
    """The pages with sums, with the pods that each leaves out; and the days that are read from them, by period.

    Together with the `rest`, they have each moment of the window once.
    """

    left_out: Mapping[int, Sequence[int]]
    days: Mapping[int, int]

    def groups(self, rows: Rows) -> Iterator[tuple[int, list[Group]]]:
        """The groups of each page and day, with its period."""
        for day, period in self.days.items():
            for page, sums in rows(_OF_DAY, {"day": day}):
                if page in self.left_out:
                    yield period, decoded(sums)

    def rest(self, rows: Rows, bounds: Mapping[str, Any], *, page: int) -> list[Pages]:
        """The segments to read besides; a page has a number of pods."""
        window = Window(bounds["start"], bounds["end"])
        rests, pods = _rests(window, self.days), [pod for pods in self.left_out.values() for pod in pods]
        ranges = [
            (span, after, upto)
            for after, upto, is_summed in _ranges(last_pod(rows), self.left_out)
            for span in (rests if is_summed else [window])
        ]
        return [
            Pages(
                IN_WINDOW, (each for span, *ends in ranges for each in numbered(_in(bounds, span), *ends, page=page))
            ),
            Pages(
                _LISTED,
                (
                    {**_in(bounds, span), "pods": json.encode(pods[first : first + page]).decode()}
                    for span in _runs(self.days)
                    for first in range(0, len(pods), page)
                ),
            ),
        ]


def read_stored(rows: Rows, bounds: Mapping[str, Any], cuts: Sequence[int]) -> StoredSums:
    """What can be read from sums: whole days that no cut divides."""
    window, divided = Window(bounds["start"], bounds["end"]), {cut // US_PER_DAY for cut in cuts if cut % US_PER_DAY}
    days = range(-(-window.start_us // US_PER_DAY), window.end_us // US_PER_DAY)
    periods = {day: bisect_right(cuts, day * US_PER_DAY) for day in days if day not in divided}
    if not periods or len(_rests(window, periods)) > _MOST_RESTS:
        return StoredSums({}, {})
    return StoredSums({page: _PODS.decode(left_out) for page, left_out in rows(_SUMMED, {})}, periods)


def pods_of(page: int) -> dict[str, int]:
    """The pods of a page, as parameters."""
    return {"after": page * PAGE, "upto": (page + 1) * PAGE}


def computed(
    execute: Callable[[str, Mapping[str, Any]], Iterable[Row]], page: int, left_out: str
) -> dict[int, list[Group]]:
    """The groups of a page by day, from its segments; `left_out` are numbers as JSON."""
    return groups_by_day(execute(_SPANS, {**_ALL_TIME, **pods_of(page), "left_out": left_out}))


def differing_sums(connection: sqlite3.Connection, page: int) -> str | None:
    """Says so if the stored sums of a page are not those of its segments, which it reads in one transaction."""
    connection.execute("BEGIN")
    try:
        [left_out] = connection.execute(_LEFT_OUT, (page,)).fetchone() or [None]
        if left_out is None:
            return None  # they were just withdrawn
        stored = dict(connection.execute(_OF_PAGE, (page,)))
        found = computed(connection.execute, page, left_out)
    finally:
        connection.execute("ROLLBACK")
    if stored == {day: encoded(groups) for day, groups in found.items()}:
        return None
    return f"the stored sums of pods {page * PAGE + 1} to {(page + 1) * PAGE} are not those of their segments"


def _in(bounds: Mapping[str, Any], span: Window) -> dict[str, Any]:
    return {**bounds, "start": span.start_us, "end": span.end_us}


def _runs(days: Iterable[int]) -> list[Window]:
    """The spans of consecutive days, which ascend."""
    runs: list[Window] = []
    for day in days:
        start_us = day * US_PER_DAY
        if runs and runs[-1].end_us == start_us:
            start_us = runs.pop().start_us
        runs.append(Window(start_us, (day + 1) * US_PER_DAY))
    return runs


def _rests(window: Window, days: Iterable[int]) -> list[Window]:
    """The parts of the window before, between and after these days."""
    edges = [window.start_us, *(us for run in _runs(days) for us in run), window.end_us]
    return [Window(*each) for each in zip(edges[::2], edges[1::2], strict=True) if each[0] < each[1]]


def _ranges(last: int, summed: Collection[int]) -> Iterator[tuple[int, int, bool]]:
    """The pods up to the last one as (after, upto], whether their pages have sums."""
    pages = range(-(-last // PAGE))
    for is_summed, found in groupby(pages, key=lambda page: page in summed):
        run = [*found]
        yield run[0] * PAGE, min((run[-1] + 1) * PAGE, last), is_summed


_MOST_LEFT_OUT: Final = 0.1
"""Part of a page's pods that may not have ended."""
_FULL: Final = "SELECT ifnull(min(id), 1) - 1, ifnull(max(id), 0) FROM pods"
_COUNT: Final = "SELECT count(*) FROM pods WHERE id > :after AND id <= :upto"
_LASTING: Final = f"SELECT pod FROM pod_days WHERE day = {LASTING} AND pod > :after AND pod <= :upto ORDER BY pod"  # noqa: S608 (numbers only)
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
            page = (pod - 1) // PAGE
            if page in known and pod not in known[page]:
                self._delete(page)

    def steps(self, transaction: Callable[[], AbstractContextManager[None]]) -> Iterator[int]:
        """Add up a page in each step, in a transaction of its own; yields how many pods were added up so far."""
        first, last = self._connection.execute(_FULL).fetchone()
        pods = 0
        for page in range(first // PAGE, last // PAGE):
            lasting = [pod for (pod,) in self._connection.execute(_LASTING, pods_of(page))]
            if self._is_due(page, len(lasting)):
                with transaction():
                    self._store(page, lasting)
                pods += PAGE - len(lasting)
                yield pods

    def _is_due(self, page: int, lasting: int) -> bool:
        """Whether it has no sums and most pods have ended, or at least half of those that its sums left out."""
        left_out = self._known().get(page)
        if left_out is not None:
            return bool(left_out) and 2 * lasting <= len(left_out)
        [pods] = self._connection.execute(_COUNT, pods_of(page)).fetchone()
        return bool(pods) and lasting <= _MOST_LEFT_OUT * pods

    def _store(self, page: int, left_out: list[int]) -> None:
        known, text = self._known(), json.encode(left_out).decode()
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
            self._left_out = {page: frozenset(json.decode(left_out)) for page, left_out in rows}
        return self._left_out
