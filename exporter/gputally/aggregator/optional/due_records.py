"""The records of preemptions of jobs that a webhook is to get now."""

from collections.abc import Sequence
from datetime import UTC
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from gputally.ledger.open import open_reader
from gputally.reports.job_preemptions import JobPreemption, is_due, of_records
from gputally.reports.preemption_records import record_row, record_text

PAGE: Final = 100
"""Pending records read at once, which limits the memory."""
VERSION: Final = 1
"""Raised when a field of the document is removed or changes its meaning."""
_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")


class DueRecord(NamedTuple):
    """A record by its ID, as a JSON document."""

    id: str
    document: bytes


class DueRecords(NamedTuple):
    """What is due among one page of the `pending` records; `withdrawn` have no victim any more.

    The next page begins after the ID `last`, None if there is none.
    """

    pending: int
    due: Sequence[DueRecord]
    withdrawn: Sequence[str]
    last: str | None


def due_records(ledger: str, *, after: str, now_us: int) -> DueRecords:
    """Read a page of the ledger at this URL, which may block. Raises: LedgerError."""
    with open_reader(ledger) as reader:
        pending = reader.pending_deliveries(after=after, limit=PAGE)
        queued_us = {each.id: each.queued_us for each in pending.page}
        found = {each.id: each for each in of_records(reader.victims(list(queued_us)))} if queued_us else {}
        complete_us = pending.pods_complete_us
        due = [
            each
            for each in found.values()
            if is_due(each, queued_us=queued_us[each.id], pods_complete_us=complete_us, now_us=now_us)
        ]
        cluster = reader.state().cluster if due else None
    return DueRecords(
        pending.total,
        [DueRecord(each.id, _document(each, cluster, now_us)) for each in due],
        sorted(queued_us.keys() - found.keys()),
        pending.page[-1].id if len(pending.page) == PAGE else None,
    )


def _document(found: JobPreemption, cluster: str | None, now_us: int) -> bytes:
    """It goes to the owners of victims, so it has no names of preemptors."""
    row = record_row(found, UTC, now_us=now_us, tiers_only=True)
    head = {"version": VERSION, "cluster": cluster, "text": record_text(row)}
    return _ENCODER.encode(head | structs.asdict(row))
