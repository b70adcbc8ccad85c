"""Imports jobs into a ledger of their own. Importing the same rows again changes nothing."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field, json

from gputally.importing.imported_job import Classifier, ImportedJob
from gputally.importing.row_cells import Rejected
from gputally.ledger.records import Window
from gputally.ledger.sqlite.import_ledger import SqliteImportLedger
from gputally.model.allocation import Outcome

if TYPE_CHECKING:
    from gputally.model.pod import PodRecord

_BATCH = 5_000
"""Rows in one transaction."""


class Counts(Struct, kw_only=True):
    """What became of the rows; `without` had no GPU, or never started."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    without: int = 0
    rejected: list[Rejected] = field(default_factory=list)


class Plan(NamedTuple):
    """How rows become allocations: `window` is from the first job to the end of running ones.

    `terms` identifies all that affects the result beside the rows: rules and prices.
    """

    classifier: Classifier
    window: Window
    terms: str


Row = ImportedJob | Rejected | None


def import_jobs(ledger: SqliteImportLedger, rows: Iterable[Row], plan: Plan) -> Iterator[Counts]:
    """Import all rows; yields the counts so far after each transaction. Raises: LedgerError."""
    counts, source = Counts(), iter(rows)
    while batch := list(islice(source, _BATCH)):
        jobs = [row for row in batch if isinstance(row, ImportedJob)]
        counts.rejected += [row for row in batch if isinstance(row, Rejected)]
        counts.without += sum(row is None for row in batch)
        _add(ledger, jobs, plan, counts)
        yield counts


def window_of(rows: Iterable[Row]) -> Window | None:
    """From the first start to the last time of all jobs; None without jobs."""
    start_us, end_us = None, 0
    for job in rows:
        if isinstance(job, ImportedJob):
            start_us = job.start_us if start_us is None else min(start_us, job.start_us)
            end_us = max(end_us, job.end_us or job.start_us)
    return None if start_us is None else Window(start_us, end_us)


def _add(ledger: SqliteImportLedger, jobs: list[ImportedJob], plan: Plan, counts: Counts) -> None:
    digests = {plan.classifier.uid(job): _digest(job, plan) for job in jobs}
    known = ledger.known(digests)
    records: dict[str, PodRecord] = {}
    for job, (uid, digest) in zip(jobs, digests.items(), strict=True):
        before = known.get(uid)
        if before and before.digest == digest:
            counts.unchanged += 1
            continue
        revision = before.revision + 1 if before else 1
        records[uid] = plan.classifier.record(job, until_us=plan.window.end_us, revision=revision)
        counts.new += before is None
        counts.changed += before is not None
    if records:
        ledger.add(records, digests, plan.window)


def _digest(job: ImportedJob, plan: Plan) -> int:
    """A hash of everything that the allocation depends on."""
    until_us = plan.window.end_us if job.outcome is Outcome.RUNNING else 0
    content = blake2b(json.encode((job, until_us, plan.terms)), digest_size=8)
    return int.from_bytes(content.digest(), signed=True)
