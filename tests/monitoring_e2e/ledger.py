"""Reads a time window of the ledger with plain SQL."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

SEGMENTS = """
SELECT s.tier, s.tenant, s.quantity, max(s.start_us, :from_us), min(ifnull(s.end_us, :to_us), :to_us), p.per_gpu_hour
FROM current_segments s JOIN prices p ON p.price_key = s.price_key
WHERE s.start_us < :to_us AND ifnull(s.end_us, :to_us) > :from_us
"""
PREEMPTIONS = """
SELECT preemptor_tier, victim_tier, quantity FROM preemptions p
WHERE recorded_us = (SELECT max(recorded_us) FROM preemptions q WHERE q.victim_uid = p.victim_uid)
"""


class Segment(NamedTuple):
    """The part of a segment inside the window: µGPU, µs, and the price per GPU-hour."""

    tier: str
    tenant: str
    quantity: int
    start_us: int
    end_us: int
    price: str

    @property
    def gpu_seconds(self) -> float:
        return self.quantity * (self.end_us - self.start_us) / 1e12

    @property
    def cost(self) -> float:
        return float(Decimal(self.price) * self.quantity * (self.end_us - self.start_us) / 10**12 / 3600)


@dataclass(frozen=True)
class Ledger:
    """The ledger file; its writer may have ended."""

    path: Path

    def segments(self, start: float, end: float) -> list[Segment]:
        """All segments in the window, which is in seconds since the epoch."""
        window = {"from_us": round(start * 1e6), "to_us": round(end * 1e6)}
        return [Segment(*row) for row in self._rows(SEGMENTS, window)]

    def preemptions(self) -> dict[tuple[str, str], int]:
        """The number of preemptions by (preemptor tier, victim tier)."""
        return Counter((preemptor, victim) for preemptor, victim, _ in self._rows(PREEMPTIONS))

    def gpus_taken(self) -> dict[tuple[str, str], float]:
        """The GPUs of preempted pods by (preemptor tier, victim tier)."""
        taken = defaultdict[tuple[str, str], float](float)
        for preemptor, victim, quantity in self._rows(PREEMPTIONS):
            taken[preemptor, victim] += quantity / 1e6
        return taken

    def _rows(self, sql: str, parameters: dict[str, Any] | None = None) -> Iterator[tuple[Any, ...]]:
        connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        try:
            yield from connection.execute(sql, parameters or {})
        finally:
            connection.close()


class Sums(NamedTuple):
    """GPU-seconds, cost, and the maximum number of GPUs at one time."""

    gpu_seconds: float
    cost: float
    most_gpus: float


def sums(segments: list[Segment], by: str) -> dict[str, Sums]:
    """The sums of segments by `tier` or `tenant`."""
    groups = defaultdict[str, list[Segment]](list)
    for segment in segments:
        groups[getattr(segment, by)].append(segment)
    return {name: _sums(group) for name, group in groups.items()}


def _sums(group: list[Segment]) -> Sums:
    return Sums(sum(each.gpu_seconds for each in group), sum(each.cost for each in group), most_gpus(group))


def most_gpus(group: list[Segment]) -> float:
    """The maximum number of GPUs at any time."""
    changes = sorted(
        change for each in group for change in ((each.start_us, each.quantity), (each.end_us, -each.quantity))
    )
    held = most = 0
    for _, quantity in changes:  # at the same time, ends come first
        held += quantity
        most = max(most, held)
    return most / 1e6
