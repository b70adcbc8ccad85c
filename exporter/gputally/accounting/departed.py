"""Pods that exist no longer, for as long as agents may still tell what they did."""

from collections.abc import Iterable, Iterator

from gputally.model.pod import PodRecord
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

_LATE_US = 60 * US_PER_SECOND
"""How long after a pod has gone its node's kubelet may still list its devices."""
_MOST_US = 24 * US_PER_HOUR
"""How long a pod is remembered whose node's agent does not answer."""


class Departed:
    """By UID, in the order of their going."""

    def __init__(self) -> None:
        self._records: dict[str, tuple[int, PodRecord]] = {}
        self._on_node: dict[str, dict[str, None]] = {}
        self._changed: set[str] = set()

    def restore(self, records: Iterable[PodRecord], *, at_us: int) -> None:
        """Take up what an earlier process remembered, as if it had gone at `at_us`."""
        for record in records:
            self._put(record, at_us)

    def add(self, record: PodRecord, *, at_us: int) -> None:
        """Remember a pod that held devices of an agent's node."""
        self._put(record, at_us)
        self._changed.add(record.uid)

    def revise(self, record: PodRecord) -> None:
        """More is known of a pod that is remembered."""
        self._records[record.uid] = (self._records[record.uid][0], record)
        self._changed.add(record.uid)

    def get(self, uid: str) -> PodRecord | None:
        """The pod as it was last known."""
        return self._records[uid][1] if uid in self._records else None

    def on_node(self, node: str) -> Iterator[PodRecord]:
        """Those that were on `node`."""
        return (self._records[uid][1] for uid in self._on_node.get(node, ()))

    def forget(self, node: str, *, told_us: int, needed: Iterable[str | None]) -> None:
        """The agent of `node` has told what there was up to `told_us`: it will not tell of others than `needed`."""
        if node in self._on_node:
            wanted = set(needed)
            for uid in [uid for uid in self._on_node[node] if uid not in wanted]:
                if self._records[uid][0] < told_us - _LATE_US:
                    self._drop(uid)

    def advance(self, now_us: int) -> None:
        """Forget those of whom nothing was told for too long."""
        while self._records:
            uid, (left_us, _) = next(iter(self._records.items()))
            if left_us >= now_us - _MOST_US:
                break
            self._drop(uid)

    def drain(self) -> dict[str, PodRecord | None]:
        """What changed since the last call; None for those forgotten."""
        changed = {uid: self.get(uid) for uid in self._changed}
        self._changed.clear()
        return changed

    def _put(self, record: PodRecord, at_us: int) -> None:
        self._records[record.uid] = (at_us, record)
        self._on_node.setdefault(record.node, {})[record.uid] = None

    def _drop(self, uid: str) -> None:
        node = self._records.pop(uid)[1].node
        self._changed.add(uid)
        del self._on_node[node][uid]
        if not self._on_node[node]:
            del self._on_node[node]
