"""Reads Events `FailedCreate`: the last refusal of each workload, limited in number.

Whoever may create Events in a namespace chooses every character of them.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.limits import LimitOverflow
from gputally.accounting.policy.quotas import is_gpu
from gputally.model.kube.events import Event
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Owner, OwnerReference, can_exist
from gputally.model.needs import QuotaState
from gputally.model.quantities import LIMITS, REQUESTS
from gputally.model.rules import Rules
from gputally.model.units import US_PER_HOUR, US_PER_SECOND, to_us
from gputally.model.verdicts import Reason
from gputally.placement.resource_requests import amount_of

_MOST_MESSAGE: Final = 2048
"""Longer messages are cut off before they are read; the API server limits those of its own quotas to less."""
_MOST_TEXT: Final = 400
_FORBIDDEN: Final = re.compile(r'pods "[^"]{1,253}" is forbidden: ')
_QUOTA: Final = re.compile(
    r"exceeded quota: (?P<name>[a-z0-9.-]{1,253}), "
    r"requested: (?P<requested>\S+), used: (?P<used>\S+), limited: (?P<limited>\S+)"
)
_PREFIXES: Final = ("(combined from similar events): ", "Error creating: ")
KEPT_US: Final = US_PER_HOUR
"""How long a refusal counts unless it is repeated: as long as the API server keeps Events."""
RETRIED_US: Final = 1200 * US_PER_SECOND
"""How long it is charged unless it is repeated: controllers try again after 17 minutes at most.

Source: k8s.io/client-go util/workqueue/default_rate_limiters.go.
"""
_REASON: Final = "FailedCreate"


class Refusal(Struct, frozen=True, kw_only=True, gc=False):
    """Why the API server refuses to create the pods of a workload, as its controller said last, at `at_us`.

    It said so first at `first_us`. `quota` is the one that refuses them, in devices, millicores or bytes; None if it is
    another check of admission. `text` is what the API server answered, shortened.
    """

    first_us: int
    at_us: int
    text: str
    quota: QuotaState | None


def refusal_of(event: Event, rules: Rules, *, at_us: int) -> Refusal:
    """The refusal that an Event reports; its times are `at_us`, when it was observed, at the latest."""
    times_us = [min(to_us(time), at_us) for time in _times(event)] or [at_us]
    text = _answer((event.message or "")[:_MOST_MESSAGE])
    return Refusal(first_us=min(times_us), at_us=max(times_us), text=text[:_MOST_TEXT], quota=_quota(text, rules))


def reason_of(quota: QuotaState | None) -> Reason:
    """Why pods are refused by this quota; None is another check of admission."""
    if quota is None:
        return Reason.REFUSED
    return Reason.QUOTA_NEVER if quota.needed > quota.hard else Reason.QUOTA


def _times(event: Event) -> Iterator[datetime]:
    repeated = event.series.last_observed_time if event.series else None
    for each in (event.event_time, repeated, event.first_timestamp, event.last_timestamp):
        if each:
            yield each


def _answer(message: str) -> str:
    """The answer of the API server, without the name of the pod, which is another one at each try."""
    if found := _FORBIDDEN.search(message):
        return message[found.end() :]
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    return message


def _quota(text: str, rules: Rules) -> QuotaState | None:
    """The quota that refuses the pod, with the resource that exceeds it: GPUs, if they are among several.

    Source: k8s.io/apiserver pkg/admission/plugin/resourcequota/controller.go, CheckRequest.
    """
    found = _QUOTA.search(text)
    if found is None:
        return None
    requested, used, limited = (_quantities(found[part]) for part in ("requested", "used", "limited"))
    exceeded = [each for each in requested if each in used and each in limited]
    states = (
        _state(found["name"], key, requested[key], used[key], limited[key])
        for key in sorted(exceeded, key=lambda key: not is_gpu(key, rules))
    )
    return next((each for each in states if each), None)


def _quantities(text: str) -> dict[str, str]:
    """Quantities by resource, from `requests.cpu=1,requests.nvidia.com/gpu=8`."""
    pairs = (each.partition("=") for each in text.split(","))
    return {key: amount for key, equals, amount in pairs if equals}


def _state(name: str, key: str, requested: str, used: str, limited: str) -> QuotaState | None:
    what = key.removeprefix(REQUESTS)
    measured_as = what.removeprefix(LIMITS)
    try:
        needed, taken, hard = (amount_of(measured_as, amount) for amount in (requested, used, limited))
    except ValueError:
        return None
    return QuotaState(name=name, what=what, hard=hard, used=taken, needed=needed)


class FailedCreates:
    """The last refusal by workload: by namespace, then by UID; the Event must be in the workload's own namespace.

    Beyond the limit, the namespace with most workloads loses its oldest: it cannot displace those of others.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._by_namespace: dict[str, dict[str, tuple[Owner, Refusal]]] = {}
        self._count = 0
        self.limit_overflow = LimitOverflow()
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
        if self._count >= Kind.FAILED_CREATES.limit.most:
            fullest = max(self._by_namespace, key=lambda each: len(self._by_namespace[each]))
            self.drop(fullest, next(iter(self._by_namespace[fullest])))
            self.limit_overflow = self.limit_overflow.plus_one(fullest)
        self._by_namespace.setdefault(owner.namespace, {})[uid] = owner, refusal
        self._count += 1
