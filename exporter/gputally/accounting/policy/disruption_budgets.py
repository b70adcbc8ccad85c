"""PodDisruptionBudgets: which pods they select, and what they allowed when a disruption was decided.

A budget's status follows disruptions within milliseconds, and the API writes decisions in whole seconds. So what was
observed before the second of the decision counts, less the victims that this status does not show yet: neither the
disruption itself nor its status update is mistaken for the state before.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from gputally.accounting.base.limits import SELECTOR_CHARACTERS, LimitOverflow, NamespaceLimit
from gputally.accounting.base.state_part import StatePart
from gputally.model.disruptions import Cause, Disrupted
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object, Selector, characters_of, selects
from gputally.model.kube.pods import ENDED_PHASES, Pod
from gputally.model.kube.policy import PodDisruptionBudget
from gputally.model.observation import ListedSeparately
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND, to_us
from gputally.placement.disruption_budgets import PodBudget, unread_budget

_KEEP_US: Final = 600 * US_PER_SECOND
"""How long deleted budgets are kept: disruptions are observed within seconds."""
_SETTLED_US: Final = 2 * US_PER_SECOND
"""After so long, the status shows a disruption. Until then it does if it was observed after the disruption."""
_SILENT_US: Final = 150 * US_PER_SECOND
"""A watch without a bookmark for so long is interrupted: servers send one about every minute."""
_MOST: Final = 1_000
"""Limit of the states that are kept of a budget; a disruption before the oldest one has an unknown verdict."""
_DECODER: Final = msgspec.msgpack.Decoder(dict[str, str])


class BudgetHistory:
    """The last states of one budget: (when observed, the disruptions that it allows, None while that is not computed).

    Victims are (when decided, when observed).
    """

    def __init__(self, found: PodDisruptionBudget, at_us: int) -> None:
        created = found.metadata.creation_timestamp
        self.namespace = found.metadata.namespace
        self.name = found.metadata.name
        self.selector: Selector | None = found.spec.selector
        self.created_us = to_us(created) if created else at_us
        self.gone_us: int | None = None
        self._states: deque[tuple[int, int | None]] = deque(maxlen=_MOST)
        self._victims: deque[tuple[int, int]] = deque(maxlen=_MOST)

    def observe(self, found: PodDisruptionBudget, at_us: int) -> None:
        """Add the present state."""
        self.selector = found.spec.selector
        is_computed = found.status.observed_generation >= found.metadata.generation
        allowed = found.status.disruptions_allowed if is_computed else None
        if not self._states or self._states[-1][1] != allowed:
            self._states.append((at_us, allowed))

    @property
    def allowed(self) -> int:
        """The disruptions that it allows now; none before they are computed, as the scheduler takes it."""
        return (self._states[-1][1] or 0) if self._states else 0

    def existed(self, decided_us: int) -> bool:
        """Whether the budget existed then."""
        return self.created_us <= decided_us and (self.gone_us is None or self.gone_us > decided_us)

    def charge(self, decided_us: int, at_us: int) -> int | None:
        """The disruptions that were allowed before this one, which is one less from now on; None if unknown."""
        states = ((us, allowed) for us, allowed in reversed(self._states) if us < decided_us)
        since_us, allowed = next(states, (0, None))
        unseen = sum(self._is_unseen(*victim, since_us=since_us, now_us=decided_us) for victim in self._victims)
        self._victims.append((decided_us, at_us))
        return None if allowed is None else allowed - unseen

    @staticmethod
    def _is_unseen(decided_us: int, at_us: int, *, since_us: int, now_us: int) -> bool:
        """Whether the status of `since_us` does not show a victim; it was decided by the end of its second."""
        by_us = min(at_us, decided_us + US_PER_SECOND)
        return now_us - decided_us <= _SETTLED_US and by_us >= since_us


class DisruptionBudgets(StatePart[Struct]):
    """The budgets that exist, and those deleted within ten minutes. They are listed again at each start.

    `complete_us` says up to when their watch was complete. Tenants create budgets, and each one costs time for each
    victim: in a namespace with one that is not kept, because of its number or its selector, verdicts are unknown.
    """

    name = "disruption-budget"
    kinds = (Kind.DISRUPTION_BUDGETS,)

    def __init__(self, complete_us: Callable[[], int]) -> None:
        self._complete_us = complete_us
        self.in_namespace: dict[str, dict[str, BudgetHistory]] = {}
        """Budgets by namespace and UID; namespaces without any are not in it."""
        self._known: dict[str, BudgetHistory] = {}
        self._limit = NamespaceLimit(Kind.DISRUPTION_BUDGETS.limit, self._forget)
        self._unread: dict[str, str] = {}
        """The namespaces of existing budgets that are not kept, by UID."""
        self._unread_in = Counter[str]()
        """How many of them, by namespace."""
        self._listed_us: int | None = None
        """When all budgets were known for the first time."""

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        if isinstance(found, PodDisruptionBudget):
            uid, namespace = found.metadata.uid, found.metadata.namespace
            if not self._is_kept(uid, namespace, found.spec.selector):
                self._forget(namespace, uid)
                return
            self._read(uid)
            history = self._known.get(uid) or BudgetHistory(found, at_us)
            history.observe(found, at_us)
            self._known[uid] = self.in_namespace.setdefault(history.namespace, {})[uid] = history

    @property
    def limit_overflow(self) -> LimitOverflow:
        """See `StatePart.limit_overflow`."""
        return self._limit.overflow

    def gone(self, uid: str, *, at_us: int) -> None:
        """See `StatePart.gone`."""
        self._read(uid)
        if (known := self._known.get(uid)) and known.gone_us is None:
            known.gone_us = at_us

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in {*self._known, *self._unread} - {*uids}:
            self.gone(uid, at_us=at_us)
        if self._listed_us is None:
            self._listed_us = at_us

    def advance(self, now_us: int) -> None:
        """See `StatePart.advance`."""
        for uid, each in tuple(self._known.items()):
            if each.gone_us is not None and each.gone_us < now_us - _KEEP_US:
                self._drop(each.namespace, uid)

    def read(self) -> list[PodBudget] | None:
        """The budgets that exist; None before all of them were listed."""
        if self._listed_us is None:
            return None
        return [
            PodBudget(namespace=each.namespace, name=each.name, selector=each.selector, allowed=each.allowed)
            for each in self._known.values()
            if each.gone_us is None
        ] + [unread_budget(namespace) for namespace in self._unread_in]

    def selecting(self, namespace: str, labels: Mapping[str, str]) -> tuple[str, ...] | None:
        """UIDs of the budgets that select a pod with these labels; None in a namespace with one that is not kept."""
        if namespace in self._unread_in:
            return None
        budgets = self.in_namespace.get(namespace, {})
        return tuple(uid for uid, each in budgets.items() if selects(each.selector, labels))

    def violated(
        self, namespace: str, selecting: Iterable[str] | None, reported: Disrupted, *, at_us: int
    ) -> bool | None:
        """Whether a budget allowed no disruption when this one was decided; counts it from now on.

        `selecting` are the UIDs of the budgets that select the pod, None if its labels are not known. The Eviction API
        keeps budgets itself. None if it is unknown: no complete list was observed before, or no state of the budget, or
        the watch reports nothing.
        """
        if self._listed_us is None:
            return None
        decided_us = reported.at_us
        existing = {uid: each for uid, each in self.in_namespace.get(namespace, {}).items() if each.existed(decided_us)}
        is_complete = namespace not in self._unread_in and (not existing or selecting is not None)
        if not self._knows(decided_us) or not is_complete:
            return None
        allowed = [existing[uid].charge(decided_us, at_us) for uid in selecting or () if uid in existing]
        if reported.cause is Cause.EVICTION:
            return False
        if any(each is not None and each <= 0 for each in allowed):
            return True
        return None if None in allowed else False

    def _is_kept(self, uid: str, namespace: str, selector: Selector | None) -> bool:
        if characters_of(selector) > SELECTOR_CHARACTERS:
            self._limit.refuse(namespace)
            return False
        return self._limit.put(namespace, uid)

    def _forget(self, namespace: str, uid: str) -> None:
        """An existing budget is not kept."""
        self._drop(namespace, uid)
        if uid not in self._unread:
            self._unread[uid] = namespace
            self._unread_in[namespace] += 1

    def _read(self, uid: str) -> None:
        """A budget is kept, or gone."""
        if namespace := self._unread.pop(uid, None):
            self._unread_in[namespace] -= 1
            if not self._unread_in[namespace]:
                del self._unread_in[namespace]

    def _drop(self, namespace: str, uid: str) -> None:
        self._limit.remove(namespace, uid)
        if self._known.pop(uid, None):
            budgets = self.in_namespace[namespace]
            del budgets[uid]
            if not budgets:
                del self.in_namespace[namespace]

    def _knows(self, decided_us: int) -> bool:
        """Whether all budgets of that time are known."""
        is_listed = self._listed_us is not None and self._listed_us < decided_us
        return is_listed and self._complete_us() >= decided_us - _SILENT_US


class CoveredPods(StatePart[Struct]):
    """The UIDs of the budgets that selected a pod when its end or its deletion was first observed, by the pod's UID."""

    name = "covered-pod"
    kinds = (Kind.PODS,)

    def __init__(self, budgets: DisruptionBudgets) -> None:
        self._budgets = budgets
        self._guarded = budgets.in_namespace
        self._selecting: dict[str, tuple[str, ...] | None] = {}

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`; without budgets, or in a namespace without any, a pod costs one look."""
        if not self._guarded or not isinstance(found, Pod) or found.metadata.namespace not in self._guarded:
            return
        if found.metadata.deletion_timestamp is not None or found.status.phase in ENDED_PHASES:
            self.last_seen(found, at_us=at_us)

    def last_seen(self, found: Object, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.last_seen`; also of a pod whose deletion is requested, or that has ended."""
        meta = found.metadata
        if meta.uid not in self._selecting and meta.namespace in self._guarded:
            self._selecting[meta.uid] = self._budgets.selecting(meta.namespace, meta.labels or {})

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self._selecting.pop(uid, None)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self._selecting.keys() - {*uids}:
            self.gone(uid, at_us=at_us)

    def violated(self, record: PodRecord, reported: Disrupted, at_us: int) -> bool | None:
        """See `DisruptionBudgets.violated`."""
        return self._budgets.violated(record.namespace, self._selecting.get(record.uid), reported, at_us=at_us)


class PodLabels(StatePart[Struct]):
    """The labels of bound pods by UID, encoded: some 300 bytes for each. Nothing unless it `is_on`."""

    name = "pod-labels"

    def __init__(self, *, is_on: bool) -> None:
        self.kinds = (Kind.PODS,) if is_on else ()
        self.is_on = is_on
        self.known: dict[str, bytes] = {}

    def seen(self, found: Object, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.seen`."""
        if not self.is_on or not isinstance(found, Pod) or not found.spec.node_name:
            return
        if found.status.phase in ENDED_PHASES:
            self.known.pop(found.metadata.uid, None)
        else:
            self.known[found.metadata.uid] = msgspec.msgpack.encode(found.metadata.labels or {})

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self.known.pop(uid, None)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self.known.keys() - {*uids}:
            self.gone(uid, at_us=at_us)

    def listed_separately(self, part: ListedSeparately, known: Collection[str]) -> None:
        """Pods were listed beside the watches, which know better about what they have reported: of `known` UIDs."""
        for each in part.objects:
            uid = each.metadata.uid
            if isinstance(each, Pod) and uid in known and uid not in self.known:
                self.seen(each, at_us=part.at_us)


def labels_in(encoded: bytes) -> Mapping[str, str]:
    """The labels."""
    return _DECODER.decode(encoded)
