"""Preemptions of jobs that a webhook is to get, as rows of the ledger."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from gputally.accounting.changes.changes import Changes
from gputally.ledger.delivery_records import PendingDeliveries, PendingDelivery, VictimRecords
from gputally.ledger.preemption_records import PreemptionRecord
from gputally.ledger.sqlite.losses.lost_work_rows import read_lost_work
from gputally.ledger.sqlite.queries import records_of
from gputally.ledger.sqlite.segment_rows import Row
from gputally.ledger.sqlite.sums.names import Rows
from gputally.model.disruptions.disruption import DisruptionRecord

INSERT_DELIVERY: Final = """
INSERT INTO preemption_deliveries VALUES (?, ?, NULL, NULL)
ON CONFLICT DO UPDATE SET result = NULL, finished_us = NULL, queued_us = excluded.queued_us WHERE result = 'withdrawn'
"""
FINISH_DELIVERY: Final = (
    "UPDATE preemption_deliveries SET result = ?, finished_us = ? WHERE job_preemption = ? AND result IS NULL"
)
_COUNT_PENDING: Final = "SELECT count(*) FROM preemption_deliveries WHERE result IS NULL"
_PENDING: Final = """
SELECT job_preemption, queued_us FROM preemption_deliveries
WHERE result IS NULL AND job_preemption > :after
ORDER BY job_preemption LIMIT :limit
"""
_PODS_COMPLETE: Final = "SELECT at_us FROM watches WHERE kind = 'pods'"
_VICTIMS: Final = """(
    SELECT victim_uid FROM disruptions
    WHERE job_preemption != '' AND job_preemption IN (SELECT value FROM json_each(:ids))
)"""
_DISRUPTIONS: Final = f"""
SELECT {", ".join(DisruptionRecord.__struct_fields__)} FROM disruptions
WHERE victim_uid IN {_VICTIMS}
ORDER BY decided_us, victim_uid
"""  # noqa: S608 (literals only)
_PREEMPTIONS: Final = f"""
SELECT {", ".join(PreemptionRecord.__struct_fields__)} FROM preemptions p
WHERE victim_uid IN {_VICTIMS}
  AND recorded_us = (SELECT max(recorded_us) FROM preemptions WHERE victim_uid = p.victim_uid)
"""  # noqa: S608 (literals only)


def read_pending(rows: Rows, *, after: str, limit: int) -> PendingDeliveries:
    """See `LedgerReader.pending_deliveries`."""
    [(total,)] = rows(_COUNT_PENDING, {})
    complete = rows(_PODS_COMPLETE, {})
    page = rows(_PENDING, {"after": after, "limit": limit}) if total else []
    return PendingDeliveries(total, complete[0][0] if complete else 0, [PendingDelivery(*row) for row in page])


def read_victims(rows: Rows, job_preemptions: Sequence[str]) -> VictimRecords:
    """See `LedgerReader.victims`."""
    ids = {"ids": json.dumps(list(job_preemptions))}
    return VictimRecords(
        list(records_of(DisruptionRecord, rows(_DISRUPTIONS, ids))),
        {each.victim_uid: each for each in records_of(PreemptionRecord, rows(_PREEMPTIONS, ids))},
        read_lost_work(rows, ids, victims=f"victim_uid IN {_VICTIMS}"),
    )


def deliveries(changes: Changes) -> Iterator[Row]:
    """New ones. A row that exists stays as it is, unless the preemption was withdrawn and is reported again."""
    for each in filter(None, changes.disruptions.values()):
        if each.announced:
            yield each.job_preemption, changes.at_us
