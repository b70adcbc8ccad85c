"""Adds ended allocations, their usage, and what preemptions destroyed of both, to daily rows.

Their periods are days (UTC), which the accounting start and the edges of closed periods divide further.
"""

import json
import sqlite3
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from gputally.ledger.measured_sums import Amounts, LostSums, MeasuredHour, divided, parts_of
from gputally.ledger.records import Window, pieces
from gputally.ledger.sqlite.ended_pods import EndedSegment
from gputally.ledger.sqlite.rows import Row
from gputally.ledger.sqlite.victims import lost_pod
from gputally.ledger.tables.daily import DAILY_LOST, DAILY_ROWS, NODE_STEPS, ROLLED_PERIODS
from gputally.ledger.tables.statements import increase, insert_missing
from gputally.model.lost_work import CheckpointSource
from gputally.model.units import US_PER_DAY, US_PER_SECOND

_ADD_PERIOD: Final = insert_missing(ROLLED_PERIODS)
_PERIOD: Final = "SELECT id FROM rolled_periods WHERE start_us = ?"
_ADD: Final = increase(DAILY_ROWS)
_ADD_STEP: Final = increase(NODE_STEPS)
_NO_STEP: Final = "DELETE FROM node_steps WHERE node_uid_text = ? AND at_us = ? AND change = 0"
PodHour = tuple[str, str, MeasuredHour]
"""The pod's UID, the resource and what was measured."""
_Key = tuple[tuple[int, int], Row]
"""Start and end of the period, and the numbers of a daily row."""
_LOST: Final = """
SELECT pod_uid, from_us, to_us, basis FROM lost_pods WHERE pod_uid IN (SELECT value FROM json_each(:uids))
"""
_ADD_LOST: Final = increase(DAILY_LOST)
_LostKey = tuple[tuple[int, int], Row, CheckpointSource]
"""Start and end of the period, the numbers of a daily row, and the basis."""


class DayParts(NamedTuple):
    """Consecutive periods, one between each two of the `bounds` (µs)."""

    bounds: list[int]

    @property
    def cuts(self) -> list[int]:
        """The bounds between the first and the last."""
        return self.bounds[1:-1]

    def period(self, number: int) -> tuple[int, int]:
        """The start and end of a period, which are numbered from 0."""
        return self.bounds[number], self.bounds[number + 1]


def day_parts(instants: Iterable[int], edges: Iterable[int]) -> DayParts:
    """The periods that cover all of these instants, which are not all the same; `edges` divide days."""
    found = sorted(instants)
    first_us = found[0] // US_PER_DAY * US_PER_DAY
    bounds = {*range(first_us, found[-1] + US_PER_DAY, US_PER_DAY)}
    last_us = max(bounds)
    return DayParts(sorted(bounds.union(us for us in edges if first_us < us < last_us)))


def numbers_of(connection: sqlite3.Connection, periods: Iterable[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """The numbers of these periods in the file, which gets those that it lacks."""
    found = sorted(periods)
    connection.executemany(_ADD_PERIOD, found)
    return {period: connection.execute(_PERIOD, period[:1]).fetchone()[0] for period in found}


class DailyRows:
    """Collects rows, which `write` adds to those in the file. `edges` (µs) divide days, see `day_parts`."""

    def __init__(self, edges: Sequence[int]) -> None:
        self._edges = edges
        self._pods: defaultdict[_Key, set[str]] = defaultdict(set)
        self._waits: defaultdict[_Key, list[int]] = defaultdict(lambda: [0, 0])
        self._gpu_time: Counter[_Key] = Counter()
        self._measured: defaultdict[_Key, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        self._steps: Counter[tuple[int, int]] = Counter()

    def add_allocated(self, segments: Iterable[EndedSegment]) -> None:
        """Add all segments of some pods; each pod once."""
        lasting = [each for each in segments if each.start_us < each.end_us]
        if not lasting:
            return
        parts = day_parts((us for each in lasting for us in (each.start_us, each.end_us)), self._edges)
        cuts = parts.cuts
        for each in lasting:
            self._steps[each.node_uid, each.start_us] += each.quantity
            self._steps[each.node_uid, each.end_us] -= each.quantity
            if each.wait_us is not None:
                waits = self._waits[parts.period(bisect_right(cuts, each.start_us)), each.labels]
                waits[:] = waits[0] + 1, waits[1] + each.wait_us
            for piece in pieces(each.start_us, each.end_us, cuts):
                key = parts.period(piece.period), each.labels
                self._gpu_time[key] += each.quantity * (piece.end_us - piece.start_us)
                self._pods[key].add(each.uid)

    def add_measured(self, hours: Sequence[PodHour], segments: Iterable[EndedSegment]) -> None:
        """Add what was measured for these pods; hours without segments belong to no line, and are left out."""
        if not hours:
            return
        of_pods = parts_of((each.uid, each.resource, each.start_us, each.labels) for each in segments)
        parts = day_parts((us for *_, hour in hours for us in hour[:2]), self._edges)
        cuts = parts.cuts
        for uid, resource, hour in hours:
            known = of_pods.get((uid, resource)) or of_pods.get((uid, ""), [])
            for labels, number, amounts in divided(hour, known, Window(*hour[:2]), cuts) if known else ():
                if any(amounts):
                    found = self._measured[parts.period(number), labels]
                    found[:] = map(int.__add__, found, amounts)

    def write(self, connection: sqlite3.Connection) -> None:
        """Add everything to the file, in the transaction of the caller."""
        keys = self._gpu_time.keys() | self._measured.keys()
        numbers = numbers_of(connection, {period for period, _ in keys})
        connection.executemany(_ADD, sorted((numbers[key[0]], *key[1], *self._amounts(key)) for key in keys))
        steps = [NODE_STEPS.new(*at, change) for at, change in sorted(self._steps.items()) if change]
        connection.executemany(_ADD_STEP, steps)
        connection.executemany(_NO_STEP, [step[:2] for step in steps])

    def _amounts(self, key: _Key) -> Iterator[int]:
        *measured, energy = self._measured.get(key, [0, 0, 0, 0])
        yield len(self._pods.get(key, ()))
        yield from self._waits.get(key, (0, 0))
        for gpu_time in (self._gpu_time[key], *measured):
            yield from divmod(gpu_time, US_PER_SECOND)
        yield energy


def hour_of(row: Row) -> PodHour:
    """The hour of a row of UID, resource and the columns `MEASURED`."""
    uid, resource, from_us, to_us, *amounts = row
    measured: Amounts = tuple(amounts)
    return uid, resource, MeasuredHour(from_us, to_us, measured)


class DailyLost:
    """Collects rows of those of the pods `uids` that lost work; `edges` (µs) divide days, see `day_parts`."""

    def __init__(self, connection: sqlite3.Connection, uids: Sequence[str], edges: Sequence[int]) -> None:
        rows = connection.execute(_LOST, {"uids": json.dumps(uids)})
        self._lost = {row[0]: lost_pod(row) for row in rows}
        self._edges = edges
        self._sums: defaultdict[_LostKey, list[int]] = defaultdict(lambda: [0, 0, 0, 0])

    def add_allocated(self, segments: Iterable[EndedSegment]) -> None:
        """Add all segments of some pods; each pod once."""
        found = [each for each in segments if each.uid in self._lost and each.start_us < each.end_us]
        with self._sums_of([us for each in found for us in (each.start_us, each.end_us)]) as sums:
            for each in found:
                sums.add_allocated(each.uid, (each.start_us, each.end_us), each.quantity, each.labels)

    def add_measured(self, hours: Sequence[PodHour], segments: Iterable[EndedSegment]) -> None:
        """Add what was measured for these pods."""
        found = [each for each in hours if each[0] in self._lost]
        parts = ((each.uid, each.resource, each.start_us, each.labels) for each in segments if each.uid in self._lost)
        with self._sums_of([us for *_, hour in found for us in (hour.from_us, hour.to_us)]) as sums:
            sums.add_measured(found, parts_of(parts))

    @contextmanager
    def _sums_of(self, instants: Sequence[int]) -> Iterator[LostSums[Row]]:
        """Sums by day between the instants, which are added to the rows."""
        parts = day_parts(instants, self._edges) if instants else DayParts([0, 0])
        sums = LostSums[Row](self._lost, Window(parts.bounds[0], parts.bounds[-1]), parts.cuts)
        yield sums
        for (labels, number, basis), amounts in sums.found.items():
            if any(amounts):
                known = self._sums[parts.period(number), labels, basis]
                known[:] = map(int.__add__, known, amounts)

    def write(self, connection: sqlite3.Connection) -> None:
        """Add everything to the file, in the transaction of the caller."""
        numbers = numbers_of(connection, {period for period, *_ in self._sums})
        rows = (
            (numbers[period], *labels, basis.value, *_divided(amounts))
            for (period, labels, basis), amounts in self._sums.items()
        )
        connection.executemany(_ADD_LOST, rows)


def _divided(amounts: Iterable[int]) -> Iterable[int]:
    """Seconds and the rest of each."""
    return (part for amount in amounts for part in divmod(amount, US_PER_SECOND))
