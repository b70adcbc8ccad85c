"""The situation of each pending pod: what its object says, its gang, and whether its scheduler works."""

from collections.abc import Collection
from typing import Final

from gputally.accounting.pods.pods import Pods
from gputally.accounting.terms.tier import serves, tier_of_pod
from gputally.accounting.waiting.bound_pods import taken_from
from gputally.accounting.waiting.gang_deadlocks import Deadlocks
from gputally.accounting.waiting.gangs import Gangs, gang_of, task_of
from gputally.accounting.waiting.live_room import LiveRoom
from gputally.accounting.waiting.scheduling_status import SchedulingStatus, status_of
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import ENDED_PHASES
from gputally.model.needs import Situation
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.model.units import US_PER_SECOND

_SILENT_US: Final = 10 * US_PER_SECOND
"""How long a scheduler may take to report on a pod."""
_MOST_SCHEDULERS: Final = 256
_MOST_UNREAD: Final = 256
"""Whole objects of pods that are kept until somebody needs to know what they say, some 4 kB each."""


class Situations:
    """Pleas of pending pods by UID, gangs, nominations and schedulers.

    `changed` are the UIDs of pending pods whose situation may differ from when somebody last cleared it; those of
    changed gangs are among them after `read`.
    """

    def __init__(self, live: LiveRoom, rules: Rules, pods: Pods) -> None:
        self.statuses: dict[str, SchedulingStatus] = {}
        self.partial_gangs = Deadlocks(pods, live, self.statuses)
        self.changed: set[str] = set()
        self._live = live
        self._rules = rules
        self.gangs = Gangs(pods.gangs.minimums.declared)
        self._redeclared = pods.gangs.redeclared
        self._unread: dict[str, PlaceablePod] = {}
        """Pending pods as last observed, by UID, since the last `read`."""
        self._nominated: dict[str, str] = {}
        """The node for which a pod is nominated, by UID."""
        self._schedulers: dict[str, None] = {}
        """Names of schedulers that were seen at work, in the order in which they were noticed."""
        self._silent: set[str] = set()
        """UIDs of pending pods on which their scheduler may yet report."""

    def nominee_seen(self, pod: PlaceablePod) -> None:
        """Take over the nomination of a pod, also of one without GPUs."""
        uid, node = pod.metadata.uid, "" if pod.spec.node_name else pod.status.nominated_node_name
        if node != self._nominated.get(uid, ""):
            self.withdraw(uid)
            if node:
                self._nominated[uid] = node
                self._live.room.nominate(node, uid, taken_from(pod, self._rules))
                self._live.changed.add(node)

    def withdraw(self, uid: str) -> None:
        """A pod is not nominated any more."""
        if node := self._nominated.pop(uid, ""):
            self._live.room.withdraw(node, uid)
            self._live.changed.add(node)

    def listed(self, uids: Collection[str]) -> None:
        """Exactly these pods exist, of those that matter."""
        for uid in self._nominated.keys() - uids:
            self.withdraw(uid)

    def gpu_pod_seen(self, pod: PlaceablePod) -> None:
        """A pod with GPUs was added or has changed."""
        uid, is_bound = pod.metadata.uid, bool(pod.spec.node_name)
        self._join_gang(pod, is_bound=is_bound)
        if is_bound:
            self._unread.pop(uid, None)
            if _is_scheduled(pod):
                self._scheduler_seen(pod.spec.scheduler_name)
            return
        self._unread[uid] = pod
        if len(self._unread) > _MOST_UNREAD:
            self._read_pods()

    def read(self) -> None:
        """Take over what pending pods say. Most pods are bound before anybody needs to know."""
        self._read_pods()
        self.gangs.redeclared(self._redeclared)
        self._redeclared.clear()
        for gang in self.gangs.changed:
            self.changed.update(self.gangs.pending(gang))
        self.gangs.changed.clear()

    def waits_no_longer(self, uid: str) -> None:
        """A pod is bound, has ended or is deleted."""
        self._drop_status(uid)
        self._unread.pop(uid, None)
        self.changed.discard(uid)
        self._silent.discard(uid)
        self.withdraw(uid)

    def left(self, uid: str) -> None:
        """A pod is deleted."""
        if uid in self._nominated:
            self.withdraw(uid)
        self.gangs.drop(uid)

    def advance(self) -> None:
        """Look again at the pods on which their schedulers had not reported, and at gangs that wait for each other."""
        self.changed |= self._silent
        self._silent.clear()
        self.partial_gangs.step()

    def of(self, record: PodRecord, at_us: int) -> Situation | None:
        """The situation of a pending pod; None while its object is not known."""
        uid, status = record.uid, self.statuses.get(record.uid)
        if status is None:
            return None
        is_silent = not status.is_reported and at_us >= record.created_us + _SILENT_US
        if not (status.is_reported or is_silent):
            self._silent.add(uid)
        gang = self.gangs.of(uid)
        return Situation(
            uid=uid if uid in self._nominated else "",
            has_scheduler=status.needs.scheduler in self._schedulers or not is_silent,
            gang=self.gangs.state(gang, self.statuses, is_silent=is_silent) if gang else None,
            queue=status.queue,
            open_claims=status.needs.claims if "claim" in status.text else (),
            nominated_node=status.nominated_node,
            text=status.text,
            is_serving=serves(tier_of_pod(record, self._rules), self._rules),
        )

    def _read_pods(self) -> None:
        for uid, pod in self._unread.items():
            status = status_of(pod, self._rules)
            if status is None:
                self._drop_status(uid)
            elif status != (known := self.statuses.get(uid)):
                self.statuses[uid] = status
                self.changed.add(uid)
                if known is None or known.needs != status.needs:
                    self.gangs.needs_changed(uid)
                if status.is_reported:
                    self._scheduler_seen(status.needs.scheduler)
        self._unread.clear()

    def _scheduler_seen(self, name: str) -> None:
        """A pod whose creator set its node looks like a bound one, so anyone may make up names."""
        if name not in self._schedulers:
            if len(self._schedulers) >= _MOST_SCHEDULERS:
                del self._schedulers[next(iter(self._schedulers))]  # noticed again if it is at work
            self._schedulers[name] = None
            self.changed.update(uid for uid, status in self.statuses.items() if status.needs.scheduler == name)

    def _join_gang(self, pod: PlaceablePod, *, is_bound: bool) -> None:
        uid, (gang, least) = pod.metadata.uid, gang_of(pod)
        if not gang or pod.status.phase in ENDED_PHASES:
            self.gangs.drop(uid)
        else:
            self.gangs.put(uid, gang, is_bound=is_bound, least=least, task=task_of(pod))

    def _drop_status(self, uid: str) -> None:
        if self.statuses.pop(uid, None):
            self.gangs.needs_changed(uid)


def _is_scheduled(pod: PlaceablePod) -> bool:
    """Whether a scheduler bound the pod; its creator may have."""
    for each in pod.status.conditions or ():  # noqa: SIM110 - without a generator, at each event of a bound pod
        if each.type == "PodScheduled" and each.status == "True":
            return True
    return False
