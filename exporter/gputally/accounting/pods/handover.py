"""Pod changes that are not yet in the ledger."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from gputally.accounting.changes.changes import Known, known_of
from gputally.model.pod_record import PodRecord


class Handover:
    """Revised allocations and changed pods, with how much of each history the ledger already has."""

    def __init__(self) -> None:
        self.revised: dict[str, PodRecord] = {}
        """Allocations with a new revision that the ledger does not have, also of deleted pods."""
        self._written: dict[str, PodRecord | None] = {}
        """Changed pods, as they were last handed to the ledger; None for new ones."""
        self.changed: dict[str, None] = {}
        """UIDs of pods that are new, have changed or are gone, until lost work has taken them up; in order."""

    def revise(self, record: PodRecord, *, at_us: int) -> PodRecord:
        """A new revision, higher than any written for this UID before, also by an earlier process."""
        record = replace(record, revision=max(record.revision + 1, at_us))
        self.revised[record.uid] = record
        return record

    def touch(self, before: PodRecord | None, record: PodRecord) -> None:
        """Mark the pod as changed."""
        self.changed[record.uid] = None
        if before is None:
            self._written[record.uid] = None
        else:
            self._written.setdefault(record.uid, before)

    def touch_all(self, records: Iterable[PodRecord]) -> None:
        """Mark all pods as changed, as if they were new."""
        for record in records:
            self.touch(None, record)

    def drop(self, uid: str) -> None:
        """Mark the pod as dropped."""
        self.changed[uid] = None
        self._written.setdefault(uid, None)

    def drain(
        self, records: Mapping[str, PodRecord]
    ) -> tuple[dict[str, PodRecord], dict[str, PodRecord | None], dict[str, Known]]:
        """Changes since the last call: revisions, pods from `records`, and what the ledger already has of both."""
        revised, written = self.revised, self._written
        self.revised, self._written = {}, {}
        pods = {uid: records.get(uid) for uid in written}
        known = {uid: known_of(before, pods[uid] or revised.get(uid)) for uid, before in written.items()}
        return revised, pods, known
