"""Collects evidence of who preempted a pod: Events, nominations to its node, and PodGroups that wait.

All of it is limited in number: whoever may create Events in a namespace can forge them.
"""

import re
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.limits import LimitOverflow
from gputally.accounting.facts.outcome import is_preemption
from gputally.errors import MalformedObject
from gputally.frameworks.groups import POD_GROUP
from gputally.frameworks.kai import kai_eviction_in, kai_group_in
from gputally.model.disruptions import Preemptor
from gputally.model.kube.events import Event, ObjectReference
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Condition, is_name, is_uid
from gputally.model.kube.pods import Pod
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND

MOST_GROUPS: Final = 10_000
"""Limit of stored groups, of some 0.3 kB each."""
_TEXT: Final = re.compile(r"Preempted by (?P<type>pod|podgroup) (?P<uid>[0-9a-f-]{36}) on node ")
MOST_NOMINATIONS: Final = 10_000
"""Limit of stored nominations; beyond it, the oldest is dropped."""
BEFORE_US: Final = 10 * US_PER_SECOND
AFTER_US: Final = 60 * US_PER_SECOND
"""A nomination is written with the decision; its observation may be late, and API times have whole seconds."""


class GroupPreemptors:
    """The pod of each group that was last observed before it was bound, by namespace and name of the PodGroup.

    Groups whose pods are all bound stay, since their victims may be observed later. Beyond the limit, the namespace
    with most groups loses the one whose pods were not observed for longest.
    """

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, Preemptor]] = {}
        self._count = 0

    def seen(self, namespace: str, name: str, pod: Preemptor) -> None:
        """A pod of a group was observed that is not bound."""
        groups = self._pods.setdefault(namespace, {})
        self._count += groups.pop(name, None) is None
        groups[name] = pod
        if self._count > MOST_GROUPS:
            self._drop_one()

    def _drop_one(self) -> None:
        fullest = max(self._pods, key=lambda each: len(self._pods[each]))
        groups = self._pods[fullest]
        del groups[next(iter(groups))]
        self._count -= 1
        if not groups:
            del self._pods[fullest]

    def get(self, by: Preemptor) -> Preemptor:
        """The group `by` with tier and tenant, if a pod of it is known; a group may have a priority of its own."""
        pod = self._pods.get(by.namespace, {}).get(by.name)
        if pod is None:
            return by
        return replace(by, tier=pod.tier, tenant=pod.tenant, class_name=pod.class_name)

    def has_created(self, by: Preemptor, record: PodRecord) -> bool:
        """Whether a pod is one of the group, as far as its spec says so."""
        return bool(by.name) and (record.namespace, record.scheduling_group) == (by.namespace, by.name)


def group_named(pod: Pod) -> str:
    """The name of the PodGroup of a pod, "" for none."""
    if group := pod.spec.scheduling_group:
        return group.pod_group_name
    return kai_group_in(pod.metadata.annotations)


def as_group(*, namespace: str, name: str, uid: str = "") -> Preemptor:
    """A PodGroup as a preemptor of which nothing else is known."""
    return Preemptor(uid=uid, namespace=namespace, name=name, kind=POD_GROUP, quantity=None)


class _Named(NamedTuple):
    """Who is named by an Event that was sent and observed at these times (µs)."""

    seen_us: int
    sent_us: int
    preemptor: Preemptor


class PreemptedEvents:
    """Preemptors by namespace and UID of the victim; Events must be in the victim's own namespace.

    Beyond the limit, the namespace with most Events loses its oldest: a namespace cannot displace Events of one that
    has fewer.
    """

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, _Named]] = {}
        """Preemptors that Events name, by namespace, oldest first."""
        self._count = 0
        self.limit_overflow = LimitOverflow()
        """Events that the limit has displaced."""

    def __len__(self) -> int:
        """The number of stored Events."""
        return self._count

    def by(self, namespace: str, victim_uid: str) -> Preemptor | None:
        """The preemptor in the first Event of a victim."""
        found = self._by_namespace.get(namespace, {}).get(victim_uid)
        return found.preemptor if found else None

    def add(self, namespace: str, victim_uid: str, preemptor: Preemptor, *, at_us: int, sent_us: int = 0) -> None:
        """Store the preemptor of an Event, unless one that was sent earlier names another for the same victim.

        kube-scheduler 1.36.3 sends two within some 10 ms if two pods choose the same victim: its preemptions run in
        parallel, and the second deletes a pod that is being deleted already.
        """
        known = self._by_namespace.get(namespace, {}).get(victim_uid)
        if known and known.sent_us < sent_us:
            return
        self._drop(namespace, victim_uid)
        if self._count >= Kind.EVENTS.limit.most:
            fullest = max(self._by_namespace, key=lambda each: len(self._by_namespace[each]))
            self._drop(fullest, next(iter(self._by_namespace[fullest])))
            self.limit_overflow = self.limit_overflow.plus_one(fullest)
        self._by_namespace.setdefault(namespace, {})[victim_uid] = _Named(at_us, sent_us, preemptor)
        self._count += 1

    def forget(self, *, before_us: int) -> None:
        """Drop Events from before that time."""
        for namespace, events in tuple(self._by_namespace.items()):
            for victim_uid, named in tuple(events.items()):
                if named.seen_us < before_us:
                    self._drop(namespace, victim_uid)

    def _drop(self, namespace: str, victim_uid: str) -> None:
        events = self._by_namespace.get(namespace, {})
        if events.pop(victim_uid, None):
            self._count -= 1
            if not events:
                del self._by_namespace[namespace]


def expect_possible(event: Event) -> None:
    """Raises: MalformedObject if the Event names pods that cannot exist; its author chose every character."""
    for each in (event.involved_object, event.related):
        if each and not _can_exist(each):
            namespace = event.metadata.namespace  # without the Event, so that many forged ones are logged once
            raise MalformedObject(f"of namespace {namespace}", "an Event names a pod that cannot exist")


def _can_exist(reference: ObjectReference) -> bool:
    """Whether all stored fields that are present may be of a pod; pod names and UIDs are ASCII."""
    names = [name for name in (reference.namespace, reference.name) if name]
    if reference.uid and not is_uid(reference.uid):
        return False
    return all(map(is_name, names)) and "".join((reference.uid, *names)).isascii()


def preemptor_of(event: Event) -> Preemptor | None:
    """The preemptor that the Event names: in `related`, otherwise by the UID in its text.

    kube-scheduler 1.36 omits `related` of pods, by an oversight in pkg/scheduler/framework/preemption/executor.go, but
    not of PodGroups, for which it preempts pods on any node of the "node cluster"; 1.27 and 1.28 name no preemptor in
    the text.
    """
    related = event.related
    if related and related.uid:
        if related.kind == POD_GROUP:
            return as_group(namespace=related.namespace, name=related.name, uid=related.uid)
        return Preemptor(uid=related.uid, namespace=related.namespace, name=related.name)
    match = _TEXT.match(event.message or "")
    if match is None:
        return None
    uid = match["uid"]
    return as_group(namespace="", name="", uid=uid) if match["type"] == "podgroup" else _pod(uid)


def _pod(uid: str) -> Preemptor:
    return Preemptor(uid=uid, namespace="", name="")


def preemptor_in(condition: Condition) -> Preemptor | None:
    """The PodGroup that KAI-Scheduler names in the condition of its victim; None if it names none."""
    found = kai_eviction_in(condition.message) if is_preemption(condition) else None
    return as_group(namespace=found.namespace, name=found.name) if found else None


class Nomination(Struct, frozen=True, gc=False):
    """When a pod was first observed as nominated to a node, and its priority."""

    node: str
    at_us: int
    priority: int
    preemptor: Preemptor


class Nominations:
    """Nominations by UID of the pod, the oldest first. Its last node counts."""

    def __init__(self) -> None:
        self._found: dict[str, Nomination] = {}
        self._on_node: dict[str, dict[str, Nomination]] = {}

    def add(self, new: Nomination) -> None:
        """Store a nomination; the first observation of the same one counts."""
        uid = new.preemptor.uid
        if uid in self._found and self._found[uid].node == new.node:
            return
        self._drop(uid)
        self._found[uid] = self._on_node.setdefault(new.node, {})[uid] = new
        if len(self._found) > MOST_NOMINATIONS:
            self._drop(next(iter(self._found)))

    def get(self, uid: str) -> Preemptor | None:
        """The nominated pod with this UID."""
        return self._found[uid].preemptor if uid in self._found else None

    def only_one(self, node: str, *, decided_us: int, above: int) -> Preemptor | None:
        """The pod of a priority above `above` that was nominated to the node at that time; None if there are several.

        A nomination alone is no evidence of a preemption, but one that was decided on that node at that time is for one
        of the pods nominated there.
        """
        found = [
            each.preemptor
            for each in self._on_node.get(node, {}).values()
            if each.priority > above and decided_us - BEFORE_US <= each.at_us <= decided_us + AFTER_US
        ]
        return found[0] if len(found) == 1 else None

    def forget(self, *, before_us: int) -> None:
        """Drop nominations from before that time."""
        for uid in [uid for uid, each in self._found.items() if each.at_us < before_us]:
            self._drop(uid)

    def _drop(self, uid: str) -> None:
        if known := self._found.pop(uid, None):
            del self._on_node[known.node][uid]
            if not self._on_node[known.node]:
                del self._on_node[known.node]
