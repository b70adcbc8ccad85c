"""Reads a ledger as any process can."""

from pathlib import Path

from gputally.ledger.open import open_reader
from gputally.ledger.records import SegmentRecord, Window

ALWAYS = Window(0, 10**18)


def segments_in(ledger: str | Path) -> list[SegmentRecord]:
    """All segments; open ones end at the accounted time."""
    with open_reader(str(ledger)) as reader:
        return list(reader.segments(ALWAYS))
