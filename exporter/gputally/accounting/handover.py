"""What became of pods that the ledger was not told yet."""

from collections.abc import Mapping

from msgspec.structs import replace

from gputally.accounting.changes import UNKNOWN, Known, known_of
from gputally.model.pod import PodRecord


class Handover:
    """Allocations revised, and pods whose working state changed, with how much of their histories is as it was told."""

    def __init__(self) -> None:
        self._revised: dict[str, PodRecord] = {}
        self._touched: dict[str, Known] = {}

    def revise(self, record: PodRecord, *, at_us: int) -> PodRecord:
        """A new revision, above whatever was told of this UID before it was forgotten, or by an earlier process."""
        record = replace(record, revision=max(record.revision + 1, at_us))
        self._revised[record.uid] = record
        return record

    def touch(self, before: PodRecord | None, record: PodRecord) -> None:
        """The pod is another than it was."""
        known = known_of(before, record)
        self._touched[record.uid] = known.both(self._touched.get(record.uid, known))

    def drop(self, uid: str) -> None:
        """The pod is no longer kept."""
        self._touched.setdefault(uid, UNKNOWN)

    def drain(
        self, records: Mapping[str, PodRecord]
    ) -> tuple[dict[str, PodRecord], dict[str, PodRecord | None], dict[str, Known]]:
        """Since the last call: revisions, working state as in `records`, and what of both was told before."""
        revised, known = self._revised, self._touched
        self._revised, self._touched = {}, {}
        return revised, {uid: records.get(uid) for uid in known}, known
