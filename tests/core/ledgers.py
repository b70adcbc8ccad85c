"""What a ledger says, as any process may read it."""

from pathlib import Path

from gputally.ledger.open import open_reader
from gputally.ledger.records import SegmentRecord, Window

ALWAYS = Window(0, 10**18)


def segments_in(ledger: str | Path) -> list[SegmentRecord]:
    """All segments; those that last end when all was accounted."""
    with open_reader(str(ledger)) as reader:
        return list(reader.segments(ALWAYS))
