"""What became of pods that the ledger was not told yet."""

from collections.abc import Mapping

from msgspec.structs import replace

from gputally.accounting.changes import Known, known_of
from gputally.model.pod import PodRecord


class Handover:
    """Allocations revised, and pods whose working state changed, with how much of their histories is as it was told."""

    def __init__(self) -> None:
        self._revised: dict[str, PodRecord] = {}
        self._told: dict[str, PodRecord | None] = {}
        """Pods that changed, as they were told of last."""

    def revise(self, record: PodRecord, *, at_us: int) -> PodRecord:
        """A new revision, above whatever was told of this UID before it was forgotten, or by an earlier process."""
        record = replace(record, revision=max(record.revision + 1, at_us))
        self._revised[record.uid] = record
        return record

    def touch(self, before: PodRecord | None, record: PodRecord) -> None:
        """The pod is another than it was."""
        if before is None:
            self._told[record.uid] = None
        else:
            self._told.setdefault(record.uid, before)

    def drop(self, uid: str) -> None:
        """The pod is no longer kept."""
        self._told.setdefault(uid, None)

    def drain(
        self, records: Mapping[str, PodRecord]
    ) -> tuple[dict[str, PodRecord], dict[str, PodRecord | None], dict[str, Known]]:
        """Since the last call: revisions, working state as in `records`, and what of both was told before."""
        revised, told = self._revised, self._told
        self._revised, self._told = {}, {}
        pods = {uid: records.get(uid) for uid in told}
        return revised, pods, {uid: known_of(before, pods[uid] or revised.get(uid)) for uid, before in told.items()}
