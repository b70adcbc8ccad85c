"""An in-memory ledger: merges changes into the state from which the next process starts."""

from collections import defaultdict
from collections.abc import Mapping
from copy import copy
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from gputally.accounting.changes import Changes, Saved
from gputally.accounting.fleet.fleet import documents
from gputally.accounting.totals.label_limiter import KnownValue, Value
from gputally.accounting.totals.series import Labels, Series
from gputally.accounting.totals.total import Total
from gputally.model.history import grown
from gputally.model.kube.kinds import Kind
from gputally.model.node_record import NodeRecord
from gputally.model.observation import Checkpoint
from gputally.model.pod_record import PodRecord
from gputally.model.usage import AssignmentHour, AssignmentKey, GpuKey, UnallocatedHour
from gputally.model.waits import PendingSegmentRow, UncreatedPodsSegment

HISTORY: Final = (
    *("victims", "lost_work", "jobs", "progress"),
    *("priority_classes", "capacity", "asset_prices"),
)
"""The fields of `Changes` that the ledger keeps for reports alone."""
Key = TypeVar("Key")
Kept = TypeVar("Kept")


def without_dropped(changed: Mapping[Key, Kept | None]) -> dict[Key, Kept]:
    """Without the dropped entries."""
    return {key: each for key, each in changed.items() if each is not None}


def store(kept: dict[str, bytes], key: str, record: object | None) -> None:
    """Store the record as JSON; None drops it."""
    if record is None:
        kept.pop(key, None)
    else:
        kept[key] = msgspec.json.encode(record, enc_hook=tuple)


class Memory:
    """Stores records as JSON, like real ledgers, so that tests notice what JSON loses."""

    def __init__(self, *, accounting_start_us: int) -> None:
        self.accounting_start_us = self.evaluated_us = self.at_us = accounting_start_us
        self.pods = dict[str, bytes]()
        self.nodes = dict[str, bytes]()
        self.documents = defaultdict[str, dict[str, bytes]](dict)
        self.departed = dict[str, bytes]()
        self.assignment_usage = dict[tuple[AssignmentKey, int], AssignmentHour]()
        self.unallocated_usage = dict[GpuKey, UnallocatedHour]()
        self.revisions = dict[str, PodRecord]()
        self.series = dict[tuple[Total, Labels], Series]()
        self.known_values = dict[Value, KnownValue]()
        self.resumes = dict[Kind, Checkpoint]()
        self.interruptions = dict[tuple[Kind, int], int]()
        self.waits = dict[tuple[str, int], PendingSegmentRow]()
        self.uncreated_waits = dict[tuple[str, str, int], UncreatedPodsSegment]()
        self.history: dict[str, dict[Any, object]] = {name: {} for name in HISTORY}

    def write(self, changes: Changes) -> None:
        """Merge one set of changes."""
        self.evaluated_us, self.at_us = changes.evaluated_us, changes.at_us
        self._expect_known(changes)
        for kept, records in (
            (self.pods, changes.pods),
            (self.nodes, changes.nodes),
            (self.departed, changes.departed),
        ):
            for uid, record in records.items():
                store(kept, uid, record)
        for (part, key), document in changes.documents.items():
            store(self.documents[part], key, document)
        self.revisions |= changes.revisions
        self.series = without_dropped(self.series | changes.series)
        self.known_values = without_dropped(self.known_values | changes.known_values)
        self.resumes |= changes.resumes
        self.interruptions |= changes.interruptions
        self.waits = without_dropped(self.waits | changes.waits)
        self.uncreated_waits = without_dropped(self.uncreated_waits | changes.uncreated_waits)
        for name, rows in self.history.items():
            self.history[name] = without_dropped(rows | getattr(changes, name))
        self.assignment_usage |= changes.assignment_usage
        self.unallocated_usage |= changes.unallocated_usage

    def _expect_known(self, changes: Changes) -> None:
        """Check that the parts marked as known equal what was written before."""
        for uid, known in changes.known.items():
            if uid in changes.revisions and known.segments:
                before, after = self.revisions[uid].segments, changes.revisions[uid].segments
                assert tuple(before[: known.segments]) == tuple(after[: known.segments])
            record = changes.pods.get(uid)
            if record and known.terms:
                written = msgspec.json.decode(self.pods[uid], type=PodRecord).terms
                assert tuple(written[: known.terms]) == tuple(record.terms[: known.terms])

    def saved(self) -> Saved:
        """The state from which the next process starts."""
        return Saved(
            accounting_start_us=self.accounting_start_us,
            evaluated_us=self.evaluated_us,
            at_us=self.at_us,
            pods=tuple(map(_pod, self.pods.values())),
            nodes=tuple(msgspec.json.decode(text, type=NodeRecord) for text in self.nodes.values()),
            documents={
                part: tuple(msgspec.json.decode(text, type=documents()[part]) for text in kept.values())
                for part, kept in self.documents.items()
            },
            series={key: copy(series) for key, series in self.series.items()},
            known_values=dict(self.known_values),
            resumes=dict(self.resumes),
            assignment_usage=tuple(
                self.assignment_usage[key] for key in sorted(self.assignment_usage) if self.assignment_usage[key].open
            ),
            unallocated_usage=tuple(row for row in self.unallocated_usage.values() if row.open),
            departed=tuple(map(_pod, self.departed.values())),
        )


def _pod(text: bytes) -> PodRecord:
    record = msgspec.json.decode(text, type=PodRecord)
    return replace(record, segments=grown((), 0, record.segments), terms=grown((), 0, record.terms))
