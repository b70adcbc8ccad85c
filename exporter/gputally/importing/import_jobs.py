"""Imports jobs into a ledger of their own. Importing the same rows again changes nothing."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from msgspec import Struct, field, json

from gputally.importing.imported_job import ImportedJob
from gputally.importing.kube_state.pod_samples import RejectedSeries
from gputally.importing.row_cells import Rejected
from gputally.ledger.records import Window
from gputally.ledger.sqlite.imported_jobs import SqliteImportLedger

if TYPE_CHECKING:
    from gputally.model.pod_record import PodRecord

BATCH = 5_000
"""Rows in one transaction."""
Entry = TypeVar("Entry", bound=Struct)
"""What becomes an allocation: a job or a pod."""
_Entry_contra = TypeVar("_Entry_contra", bound=Struct, contravariant=True)


class Counts(Struct, kw_only=True):
    """What became of the rows; `without` had no GPU, or never started."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    without: int = 0
    rejected: list[Rejected | RejectedSeries] = field(default_factory=list)

    @property
    def imported(self) -> int:
        """The rows that are in the ledger now."""
        return self.new + self.changed + self.unchanged


class EntryClassifier(Protocol[_Entry_contra]):
    """Makes allocations of jobs or pods, by the rules and prices of the cluster."""

    def uid(self, entry: _Entry_contra, /) -> str:
        """The UID of its allocation."""

    def is_running(self, entry: _Entry_contra, /) -> bool:
        """Whether it has not ended yet."""

    def record(self, entry: _Entry_contra, /, *, until_us: int, revision: int) -> "PodRecord":
        """The allocation of an entry; what runs is allocated up to `until_us`."""


class Plan(Struct, Generic[Entry], frozen=True, kw_only=True):
    """How rows become allocations: `window` is from the first job to the end of running ones.

    `terms` identifies all that affects the result beside the rows: rules and prices. A ledger that is complete up to
    `complete_us` knows more of what still runs at the end of an earlier window: that is left as it is.
    """

    classifier: EntryClassifier[Entry]
    window: Window
    terms: str
    complete_us: int = 0


def import_jobs(
    ledger: SqliteImportLedger, rows: Iterable[Entry | Rejected | RejectedSeries | None], plan: Plan[Entry]
) -> Iterator[Counts]:
    """Import all rows; yields the counts so far after each transaction. Raises: LedgerError."""
    counts, source = Counts(), iter(rows)
    while batch := list(islice(source, BATCH)):
        import_rows(ledger, batch, plan, counts)
        yield counts


def import_rows(
    ledger: SqliteImportLedger,
    rows: Sequence[Entry | Rejected | RejectedSeries | None],
    plan: Plan[Entry],
    counts: Counts,
) -> None:
    """Import these rows in one transaction, and add them to `counts`. Raises: LedgerError."""
    jobs = [row for row in rows if row is not None and not isinstance(row, Rejected | RejectedSeries)]
    counts.rejected += [row for row in rows if isinstance(row, Rejected | RejectedSeries)]
    counts.without += sum(row is None for row in rows)
    _add(ledger, jobs, plan, counts)


def window_of(rows: Iterable[ImportedJob | Rejected | None]) -> Window | None:
    """From the first start to the last time of all jobs; None without jobs."""
    start_us, end_us = None, 0
    for job in rows:
        if isinstance(job, ImportedJob):
            start_us = job.start_us if start_us is None else min(start_us, job.start_us)
            end_us = max(end_us, job.end_us or job.start_us)
    return None if start_us is None else Window(start_us, end_us)


def _add(ledger: SqliteImportLedger, jobs: list[Entry], plan: Plan[Entry], counts: Counts) -> None:
    digests = {plan.classifier.uid(job): _digest(job, plan) for job in jobs}
    known = ledger.known(digests)
    records: dict[str, PodRecord] = {}
    for job, (uid, digest) in zip(jobs, digests.items(), strict=True):
        before = known.get(uid)
        is_later_known = plan.window.end_us < plan.complete_us and plan.classifier.is_running(job)
        if before and (before.digest == digest or is_later_known):
            counts.unchanged += 1
            continue
        revision = before.revision + 1 if before else 1
        records[uid] = plan.classifier.record(job, until_us=plan.window.end_us, revision=revision)
        counts.new += before is None
        counts.changed += before is not None
    if records:
        ledger.add(records, digests, plan.window)


def _digest(job: Entry, plan: Plan[Entry]) -> int:
    """A hash of everything that the allocation depends on."""
    until_us = plan.window.end_us if plan.classifier.is_running(job) else 0
    content = blake2b(json.encode((job, until_us, plan.terms)), digest_size=8)
    return int.from_bytes(content.digest(), signed=True)
