"""Events `FailedCreate`: the last refusal of each workload, limited in number, as anyone may create Events."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from gputally.accounting.base.limits import KEPT, Beyond
from gputally.accounting.uncreated.refusal import Refusal, refusal_of
from gputally.model.kube.events import Event
from gputally.model.kube.meta import Kind, Owner, OwnerReference, can_exist
from gputally.model.rules import Rules
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

MOST: Final = KEPT[Kind.FAILED_CREATES].most
"""Limit of workloads with a refusal, of at most 2 kB each."""
KEPT_US: Final = US_PER_HOUR
"""How long a refusal counts unless it is repeated: as long as the API server keeps Events."""
RETRIED_US: Final = 1200 * US_PER_SECOND
"""How long it is charged unless it is repeated: controllers try again after 17 minutes at most.

Source: k8s.io/client-go util/workqueue/default_rate_limiters.go.
"""
_REASON: Final = "FailedCreate"


class FailedCreates:
    """The last refusal by workload: by namespace, then by UID; the Event must be in the workload's own namespace.

    Beyond the limit, the namespace with most workloads loses its oldest: it cannot displace those of others.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._by_namespace: dict[str, dict[str, tuple[Owner, Refusal]]] = {}
        self._count = 0
        self.beyond_limits = Beyond()
        """Refusals that the limit has displaced."""

    def __len__(self) -> int:
        """The number of workloads with a refusal."""
        return self._count

    def __iter__(self) -> Iterator[tuple[Owner, Refusal]]:
        """All workloads with their refusals."""
        for each in self._by_namespace.values():
            yield from each.values()

    def in_namespace(self, namespace: str) -> Iterator[Owner]:
        """The refused workloads of a namespace."""
        return (owner for owner, _ in self._by_namespace.get(namespace, {}).values())

    def of(self, namespace: str, uid: str) -> Refusal | None:
        """The last refusal of a workload."""
        found = self._by_namespace.get(namespace, {}).get(uid)
        return found[1] if found else None

    def owner_of(self, namespace: str, uid: str) -> Owner | None:
        """The workload of a refusal."""
        found = self._by_namespace.get(namespace, {}).get(uid)
        return found[0] if found else None

    def seen(self, event: Event, *, at_us: int) -> Owner | None:
        """Store what an Event says; returns its workload, None if it says nothing new about one that can exist."""
        named, namespace = event.involved_object, event.metadata.namespace
        reference = OwnerReference(kind=named.kind, name=named.name, uid=named.uid, api_version=named.api_version)
        is_possible = named.uid.isascii() and can_exist(reference)
        if event.reason != _REASON or named.namespace != namespace or not is_possible:
            return None
        new, known = refusal_of(event, self._rules, at_us=at_us), self.of(namespace, named.uid)
        if new.at_us <= at_us - KEPT_US:
            return None
        if known:
            last = new if new.at_us >= known.at_us else known
            new = replace(last, first_us=min(known.first_us, new.first_us))
        if new == known:
            return None
        owner = Owner(namespace, reference)
        self._put(owner, new)
        return owner

    def drop(self, namespace: str, uid: str) -> bool:
        """Forget what was refused: the pods exist, or the workload is gone; returns whether there was anything."""
        refused = self._by_namespace.get(namespace, {})
        if refused.pop(uid, None) is None:
            return False
        self._count -= 1
        if not refused:
            del self._by_namespace[namespace]
        return True

    def silent(self, since_us: int) -> list[Owner]:
        """The workloads whose refusal was not repeated since then."""
        return [owner for owner, refusal in self if refusal.at_us <= since_us]

    def _put(self, owner: Owner, refusal: Refusal) -> None:
        uid = owner.reference.uid
        self.drop(owner.namespace, uid)
        if self._count >= MOST:
            fullest = max(self._by_namespace, key=lambda each: len(self._by_namespace[each]))
            self.drop(fullest, next(iter(self._by_namespace[fullest])))
            self.beyond_limits = self.beyond_limits.and_one_of(fullest)
        self._by_namespace.setdefault(owner.namespace, {})[uid] = owner, refusal
        self._count += 1
