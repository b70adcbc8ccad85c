"""Deleted pods, kept while late events, agent reports or node labels may still add to them."""

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from gputally.model.disruptions import Preemptor
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

_LATE_US = 60 * US_PER_SECOND
"""How long a kubelet may still list the devices of a deleted pod."""
_MAX_US = 24 * US_PER_HOUR
"""How long a deleted pod is kept while its node's agent does not respond."""
_UNDESCRIBED_US = US_PER_HOUR
"""How long a deleted pod is kept while its node's GPU labels are incomplete."""
_MAX_UNDESCRIBED = 4000
"""Limit of such pods: in a cluster without GPU labels, every deleted pod is one."""
KEEP_US = 600 * US_PER_SECOND
"""How late an event about a deleted pod may arrive."""


class Departed:
    """Deleted pods by UID. `_agents` and `_labels` hold the deletion time of pods that await either, oldest first."""

    def __init__(self) -> None:
        self._records: dict[str, PodRecord] = {}
        self._agents: dict[str, int] = {}
        self._labels: dict[str, int] = {}
        self._on_node: dict[str, dict[str, None]] = {}
        self._changed: set[str] = set()

    def restore(self, record: PodRecord, *, agent: bool, labels: bool) -> None:
        """Restore a record of an earlier process; drop it if no update can arrive any more."""
        self._put(record, record.remembered_us or 0, agent=agent, labels=labels)
        if not agent and not labels:
            self._drop(record.uid)

    def add(self, record: PodRecord, *, at_us: int, agent: bool = True, labels: bool = False) -> None:
        """Keep a deleted pod while its agent, or labels of its node, may still report about it."""
        if agent or labels:
            self._put(replace(record, remembered_us=at_us), at_us, agent=agent, labels=labels)
            self._changed.add(record.uid)

    def revise(self, record: PodRecord) -> None:
        """Replace the record of a kept pod."""
        self._records[record.uid] = record
        self._changed.add(record.uid)

    def get(self, uid: str) -> PodRecord | None:
        """The latest record of the pod."""
        return self._records.get(uid)

    def on_node(self, node: str) -> Iterator[PodRecord]:
        """The deleted pods of `node`."""
        return (self._records[uid] for uid in self._on_node.get(node, ()))

    def forget(self, node: str, *, reported_us: int, needed: Iterable[str | None]) -> None:
        """Drop pods of `node` that are not `needed`, once its agent has reported past their deletion."""
        if node in self._on_node:
            needed_uids = set(needed)
            for uid in [uid for uid in self._on_node[node] if uid not in needed_uids]:
                if self._agents.get(uid, reported_us) < reported_us - _LATE_US:
                    self._release(uid, self._agents)

    def described(self, node: str, is_complete: Callable[[PodRecord], bool]) -> None:
        """Labels of `node` changed: stop waiting for pods whose description is complete."""
        for uid in [uid for uid in self._on_node.get(node, ()) if uid in self._labels]:
            if is_complete(self._records[uid]):
                self._release(uid, self._labels)

    def advance(self, now_us: int) -> None:
        """Drop pods that have waited too long."""
        for since, kept_us in ((self._agents, _MAX_US), (self._labels, _UNDESCRIBED_US)):
            while since and next(iter(since.values())) < now_us - kept_us:
                self._release(next(iter(since)), since)

    def touch_all(self) -> None:
        """Mark every record as changed."""
        self._changed.update(self._records)

    def drain(self) -> dict[str, PodRecord | None]:
        """Records changed since the last call; None for dropped ones."""
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
            if len(self._labels) > _MAX_UNDESCRIBED:
                self._release(next(iter(self._labels)), self._labels)

    def _release(self, uid: str, since: dict[str, int]) -> None:
        """Stop waiting for one of the sources; drop the pod if it waits for neither."""
        del since[uid]
        if uid not in self._agents and uid not in self._labels:
            self._drop(uid)

    def _drop(self, uid: str) -> None:
        node = self._records.pop(uid).node
        self._changed.add(uid)
        del self._on_node[node][uid]
        if not self._on_node[node]:
            del self._on_node[node]


class RecentlyDeleted:
    """Recently deleted pods by UID, oldest first, as possible preemptors."""

    def __init__(self) -> None:
        self._deleted: dict[str, tuple[int, Preemptor]] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._deleted

    def add(self, preemptor: Preemptor, *, at_us: int) -> None:
        """Add a deleted pod."""
        self._deleted[preemptor.uid] = (at_us, preemptor)

    def get(self, uid: str) -> Preemptor | None:
        """The deleted pod; None if it still exists or was deleted too long ago."""
        return self._deleted[uid][1] if uid in self._deleted else None

    def forget(self, now_us: int) -> None:
        """Drop pods about which no event can arrive any more."""
        while self._deleted and next(iter(self._deleted.values()))[0] < now_us - KEEP_US:
            del self._deleted[next(iter(self._deleted))]
