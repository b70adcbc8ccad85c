"""Pods that exist no longer, for as long as agents, or labels of their nodes, may still tell of them."""

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from gputally.model.pod import PodRecord
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

_LATE_US = 60 * US_PER_SECOND
"""How long after a pod has gone its node's kubelet may still list its devices."""
_MOST_US = 24 * US_PER_HOUR
"""How long a pod is remembered whose node's agent does not answer."""
_UNDESCRIBED_US = US_PER_HOUR
"""How long one is remembered of whose node's GPUs labels have not told all."""
_MOST_UNDESCRIBED = 4000
"""How many such pods are remembered: where nothing ever tells of GPUs, they are all that there are."""


class Departed:
    """By UID. `_agents` and `_labels` say since when each may still be told of, in the order of their going."""

    def __init__(self) -> None:
        self._records: dict[str, PodRecord] = {}
        self._agents: dict[str, int] = {}
        self._labels: dict[str, int] = {}
        self._on_node: dict[str, dict[str, None]] = {}
        self._changed: set[str] = set()

    def restore(self, record: PodRecord, *, at_us: int, agent: bool, labels: bool) -> None:
        """Take up what an earlier process remembered; forget it if no news of it can come any more.

        One that does not say since when, as earlier versions kept it, is taken to have gone at `at_us`.
        """
        self._put(record, at_us if record.remembered_us is None else record.remembered_us, agent=agent, labels=labels)
        if not agent and not labels:
            self._drop(record.uid)

    def add(self, record: PodRecord, *, at_us: int, agent: bool = True, labels: bool = False) -> None:
        """Remember a pod of which an agent, or labels of its node, may still tell."""
        if agent or labels:
            self._put(replace(record, remembered_us=at_us), at_us, agent=agent, labels=labels)
            self._changed.add(record.uid)

    def revise(self, record: PodRecord) -> None:
        """More is known of a pod that is remembered."""
        self._records[record.uid] = record
        self._changed.add(record.uid)

    def get(self, uid: str) -> PodRecord | None:
        """The pod as it was last known."""
        return self._records.get(uid)

    def on_node(self, node: str) -> Iterator[PodRecord]:
        """Those that were on `node`."""
        return (self._records[uid] for uid in self._on_node.get(node, ()))

    def forget(self, node: str, *, told_us: int, needed: Iterable[str | None]) -> None:
        """The agent of `node` has told what there was up to `told_us`: it will not tell of others than `needed`."""
        if node in self._on_node:
            wanted = set(needed)
            for uid in [uid for uid in self._on_node[node] if uid not in wanted]:
                if self._agents.get(uid, told_us) < told_us - _LATE_US:
                    self._release(uid, self._agents)

    def described(self, node: str, has_told_all: Callable[[PodRecord], bool]) -> None:
        """Labels of `node` have told something."""
        for uid in [uid for uid in self._on_node.get(node, ()) if uid in self._labels]:
            if has_told_all(self._records[uid]):
                self._release(uid, self._labels)

    def advance(self, now_us: int) -> None:
        """Forget those of whom nothing was told for too long."""
        for since, kept_us in ((self._agents, _MOST_US), (self._labels, _UNDESCRIBED_US)):
            while since and next(iter(since.values())) < now_us - kept_us:
                self._release(next(iter(since)), since)

    def touch_all(self) -> None:
        """Let every record be written again."""
        self._changed.update(self._records)

    def drain(self) -> dict[str, PodRecord | None]:
        """What changed since the last call; None for those forgotten."""
        changed = {uid: self.get(uid) for uid in self._changed}
        self._changed.clear()
        return changed

    def _put(self, record: PodRecord, at_us: int, *, agent: bool, labels: bool) -> None:
        self._records[record.uid] = record
        self._on_node.setdefault(record.node, {})[record.uid] = None
        if agent:
            self._agents[record.uid] = at_us
        if labels:
            self._labels[record.uid] = at_us
            if len(self._labels) > _MOST_UNDESCRIBED:
                self._release(next(iter(self._labels)), self._labels)

    def _release(self, uid: str, since: dict[str, int]) -> None:
        """One of the reasons to remember the pod is gone."""
        del since[uid]
        if uid not in self._agents and uid not in self._labels:
            self._drop(uid)

    def _drop(self, uid: str) -> None:
        node = self._records.pop(uid).node
        self._changed.add(uid)
        del self._on_node[node][uid]
        if not self._on_node[node]:
            del self._on_node[node]
