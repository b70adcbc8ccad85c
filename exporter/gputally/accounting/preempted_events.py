"""What Events tell of preemptors, kept within bounds: who may write Events in a namespace can forge any number."""

from typing import Final

from gputally.errors import MalformedObject
from gputally.model.kube import Event, ObjectReference
from gputally.model.owner import is_name, is_uid
from gputally.model.preemption import Preemptor

MOST: Final = 10_000
"""So many are kept, of 1.5 kB at most."""


class PreemptedEvents:
    """By namespace and UID of the victim: Events are written in the victim's own namespace, and not by others.

    When there is no room, the namespace that has most of them loses its oldest: none pushes out those of another that
    has fewer.
    """

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, tuple[int, Preemptor]]] = {}
        """Of each namespace the oldest first."""
        self._count = 0

    def __len__(self) -> int:
        """How many are kept."""
        return self._count

    def by(self, namespace: str, victim_uid: str) -> Preemptor | None:
        """Whom the last Event of a victim named."""
        found = self._by_namespace.get(namespace, {}).get(victim_uid)
        return found[1] if found else None

    def add(self, namespace: str, victim_uid: str, preemptor: Preemptor, *, at_us: int) -> None:
        """Keep that an Event told this."""
        self._drop(namespace, victim_uid)
        if self._count >= MOST:
            fullest = max(self._by_namespace, key=lambda each: len(self._by_namespace[each]))
            self._drop(fullest, next(iter(self._by_namespace[fullest])))
        self._by_namespace.setdefault(namespace, {})[victim_uid] = (at_us, preemptor)
        self._count += 1

    def forget(self, *, before_us: int) -> None:
        """Keep no longer what was told before then."""
        for namespace, events in tuple(self._by_namespace.items()):
            for victim_uid, (seen_us, _) in tuple(events.items()):
                if seen_us < before_us:
                    self._drop(namespace, victim_uid)

    def _drop(self, namespace: str, victim_uid: str) -> None:
        events = self._by_namespace.get(namespace, {})
        if events.pop(victim_uid, None):
            self._count -= 1
            if not events:
                del self._by_namespace[namespace]


def expect_possible(event: Event) -> None:
    """Raises: MalformedObject if it names pods that cannot exist, of which the author chose every character."""
    for each in (event.involved_object, event.related):
        if each and not _can_exist(each):
            namespace = event.metadata.namespace  # and not which Event: who forges many is told of once
            raise MalformedObject(f"of namespace {namespace}", "an Event names a pod that cannot exist")


def _can_exist(reference: ObjectReference) -> bool:
    """Whether all of it that is kept may be a pod's, as far as it is there. Names and UIDs of pods are ASCII."""
    names = [name for name in (reference.namespace, reference.name) if name]
    if reference.uid and not is_uid(reference.uid):
        return False
    return all(map(is_name, names)) and "".join((reference.uid, *names)).isascii()
