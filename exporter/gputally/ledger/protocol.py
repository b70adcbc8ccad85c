"""What a ledger does, whatever keeps it."""

from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, Self

from msgspec import Struct

from gputally.accounting.changes import Changes, Saved
from gputally.model.allocation import Segment

Line = tuple[int, int]
"""GPU-time (µs·µGPU) as a + b·t."""


class Entry(Struct, frozen=True, kw_only=True):
    """One segment of the current revision of an allocation, with whose it is."""

    pod_uid: str
    namespace: str
    name: str
    node: str
    job_kind: str
    job: str
    revision: int
    segment: Segment


class Ledger(Protocol):
    """Durable allocations and working state. Its calls block; they raise LedgerError."""

    def __enter__(self) -> Self:
        """The ledger itself, open and owned."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Give the ledger back; it can be opened again."""

    def saved(self, *, now_us: int) -> Saved:
        """The state an earlier process left; books opened at `now_us` if there is none."""

    def write(self, changes: Changes) -> Line | None:
        """Keep all of `changes` or none of them; repeating the same changes is harmless.

        Returns: the live line of `changes` minus what the ledger's own segments add up to, which must be (0, 0).
        Raises: LedgerUnwritable when it cannot be written now; the same changes may be written later.
        """

    def overlapping(self, start_us: int, end_us: int) -> list[Entry]:
        """Segments of current revisions that touch [start_us, end_us), by start, then pod UID."""

    def check(self) -> Iterator[None]:
        """Look through all that is kept, what was written last first, a little at each step; the ledger may be written.

        Each step may be taken by another thread. Raises: LedgerDamaged, LedgerUnwritable when it cannot be read now.
        """
