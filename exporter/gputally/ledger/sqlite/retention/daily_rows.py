"""Adds ended allocations and their usage to daily rows."""

import sqlite3
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gputally.ledger.cuts import pieces
from gputally.ledger.records import Window
from gputally.ledger.sqlite.retention.day_parts import day_parts, numbers_of
from gputally.ledger.sqlite.retention.ended_pods import EndedSegment
from gputally.ledger.sqlite.segment_rows import Row
from gputally.ledger.sqlite.sums.measured_hours import Amounts, MeasuredHour, divided, parts_of
from gputally.model.units import US_PER_SECOND

_KEY: Final = 10
_AMOUNTS: Final = (
    *("pods", "bound", "wait_us", "seconds", "microseconds", "measured_seconds", "measured_microseconds"),
    *("used_seconds", "used_microseconds", "burst_seconds", "burst_microseconds", "energy"),
)
_ADD: Final = f"""
INSERT INTO daily_rows VALUES ({", ".join("?" * (_KEY + len(_AMOUNTS)))})
ON CONFLICT DO UPDATE SET {", ".join(f"{each} = {each} + excluded.{each}" for each in _AMOUNTS)}
"""  # noqa: S608 (literals only)
_ADD_STEP: Final = "INSERT INTO node_steps VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET change = change + excluded.change"
_NO_STEP: Final = "DELETE FROM node_steps WHERE node_uid_text = ? AND at_us = ? AND change = 0"

PodHour = tuple[str, str, MeasuredHour]
"""The pod's UID, the resource and what was measured."""
_Key = tuple[tuple[int, int], Row]
"""Start and end of the period, and the numbers of a daily row."""


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
        steps = [(*at, change) for at, change in sorted(self._steps.items()) if change]
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
