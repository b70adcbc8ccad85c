"""Pods that wait for GPUs: the room on the nodes, and the verdict and the cause of each wait."""

from collections.abc import Iterable

from gputally.accounting.pods.pods import Pods
from gputally.accounting.state_part import StatePart
from gputally.accounting.waiting.wait_book import WaitBook
from gputally.accounting.waiting.wait_terms import WaitTerms
from gputally.accounting.waiting.waiting_pod import WaitingPod
from gputally.model.placement.wait import PodWait, Wait
from gputally.model.pod import PodRecord
from gputally.placement.room import Room


class Waiting(StatePart[PodWait]):
    """Pending pods with GPUs, by UID, and what the nodes have for them.

    `room` has all nodes with GPUs and all pods on them; a node is complete once all its pods are known. Whoever reads
    it must not keep or change it. Without the feature, `is_on` is False, and there are no verdicts.

    `room.nodes[name].taken` has the UIDs of pods; pods with GPUs among them are in `Fleet.pods.records`.
    """

    name = "waiting"
    kinds = ()

    def __init__(self, pods: Pods, book: WaitBook, terms: WaitTerms) -> None:
        self.is_on = book.is_on
        self.room = Room()
        self.book = book
        self._pods = pods
        self._terms = terms
        self._unjudged: set[str] = set()
        """UIDs of pending pods that were not judged yet, or that changed."""

    def pod(self, uid: str) -> WaitingPod | None:
        """A pending pod with its verdict as of the last `judge`; None if it does not wait."""
        return None

    def pods(self) -> list[WaitingPod]:
        """All pending pods, the oldest first."""
        return []

    def pod_changed(self, record: PodRecord, *, at_us: int, is_gone: bool = False) -> None:
        """Update from a changed or deleted pod. A bound one was settled by `bound`."""
        if not self.is_on or record.scheduled_us is not None:
            return
        if record.end_us is not None:
            self.book.settle(record, self._tenant(record), end_us=record.end_us, at_us=at_us)
        elif not is_gone:
            self._unjudged.add(record.uid)
        if is_gone:
            self._unjudged.discard(record.uid)
            self.book.forget(record.uid)

    def judge(self, *, at_us: int) -> None:
        """Renew the verdicts that changes since the last call may have changed, and charge the waits since then."""
        for uid in self._unjudged:
            if (record := self._pods.records.get(uid)) and record.scheduled_us is None and record.end_us is None:
                self.book.charge(record, self._wait(record), at_us=at_us)
        self._unjudged.clear()
        self.book.post()

    def drain(self) -> dict[str, PodWait | None]:
        """See `StatePart.drain`."""
        return self.book.drain()

    def touch_all(self) -> None:
        """See `StatePart.touch_all`."""
        self.book.touch_all()

    def restore(self, documents: Iterable[PodWait], *, at_us: int) -> None:
        """See `StatePart.restore`; comes before the pods."""
        self.book.restore(documents, at_us=at_us)

    def pods_restored(self, *, at_us: int) -> None:
        """All pods are restored. Waits of pods that are not pending end, and all of them without the feature."""
        pending = self._pods.index.pending if self.is_on else set()
        for uid in self.book.pods.keys() - pending:
            self.book.end(uid, at_us=at_us)
        self._unjudged |= pending

    def _tenant(self, record: PodRecord) -> str:
        return self._pods.namespaces.tenant(record)

    def _wait(self, record: PodRecord) -> Wait:
        return self._terms.wait_of(record, self._tenant(record))
