"""Events that name preemptors, limited in number: whoever may create Events in a namespace can forge them."""

import re
from typing import Final, NamedTuple

from gputally.accounting.base.limits import KEPT, Beyond
from gputally.accounting.disruptions.group_preemptors import POD_GROUP, as_group
from gputally.accounting.facts.outcome import is_preemption
from gputally.errors import MalformedObject
from gputally.model.disruptions import Preemptor
from gputally.model.kai_eviction import kai_eviction_in
from gputally.model.kube.events import Event, ObjectReference
from gputally.model.kube.meta import Condition, Kind, is_name, is_uid

MOST: Final = KEPT[Kind.EVENTS].most
"""Limit of stored Events, of at most 1.5 kB each."""
_TEXT: Final = re.compile(r"Preempted by (?P<type>pod|podgroup) (?P<uid>[0-9a-f-]{36}) on node ")


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
        """By namespace, oldest first."""
        self._count = 0
        self.beyond_limits = Beyond()
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
        if self._count >= MOST:
            fullest = max(self._by_namespace, key=lambda each: len(self._by_namespace[each]))
            self._drop(fullest, next(iter(self._by_namespace[fullest])))
            self.beyond_limits = self.beyond_limits.and_one_of(fullest)
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
