"""What is known about waiting pods at one instant, with the quotas and budgets, for a thread to explain."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.lost_work.at_risk import RunningPods
from gputally.accounting.policy.disruption_budgets import labels_in
from gputally.accounting.prices.book import PriceBook
from gputally.accounting.terms.tenant import UNASSIGNED
from gputally.accounting.uncreated.snapshot import Workloads
from gputally.accounting.waiting.packing import Job, JobNodes
from gputally.accounting.waiting.priority_findings import ClassFindings
from gputally.accounting.waiting.snapshot import WaitingPod
from gputally.model.advice import PriorityChoice
from gputally.model.disruptions import Victim
from gputally.model.kube.kinds import Kind
from gputally.model.partial_gangs import NotCompared, PartialGang
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.model.unaccounted import UnaccountedEntry, UnaccountedPod
from gputally.model.waits import PendingHistory
from gputally.placement.disruption_budgets import NO_BUDGETS, Budgets
from gputally.placement.fits_now import Size
from gputally.placement.quotas import PodQuota
from gputally.placement.room import Room

_NOT_LISTED: Final = "they are still being listed"
_NO_LABELS: Final = "the labels of some pods are not known, or there are too many budgets"


class PolicyNow(NamedTuple):
    """The quotas, with the tenants of their namespaces; and what is not known, by resource, with the reason."""

    quotas: Sequence[PodQuota] = ()
    tenants: Mapping[str, str] = {}
    unknown: Mapping[str, str] = {}


NO_POLICY: Final = PolicyNow()


def read_policy(fleet: Fleet) -> PolicyNow:
    """The quotas now, and whether quotas and budgets are known."""
    admission = fleet.policy.admission
    quotas = tuple(admission.known.values())
    listed = {
        Kind.QUOTAS: admission.is_listed,
        Kind.DISRUPTION_BUDGETS: fleet.policy.budgets.read() is not None,
    }
    return PolicyNow(
        quotas=quotas,
        tenants={each.namespace: fleet.pods.namespaces.tenant_in(each.namespace) for each in quotas},
        unknown={kind.value: _why(fleet, kind) for kind, is_listed in listed.items() if not is_listed},
    )


def read_budgets(fleet: Fleet, records: Mapping[str, PodRecord]) -> Budgets:
    """The budgets now, and which pods they select; of pods without GPUs, they select none."""
    if not (found := fleet.policy.budgets.read()):
        return NO_BUDGETS
    labels = dict(fleet.policy.labels.known)

    def namespace_of(uid: str) -> str:
        return records[uid].namespace if uid in records else ""

    def labels_of(uid: str) -> Mapping[str, str] | None:
        return labels_in(labels[uid]) if uid in labels else None

    return Budgets(found, namespace_of, labels_of)


def not_considered(policy: PolicyNow, budgets: Budgets) -> dict[str, str]:
    """What a forecast did not consider, by resource, with the reason."""
    partial = {Kind.DISRUPTION_BUDGETS.value: _NO_LABELS} if budgets.is_partial else {}
    return partial | dict(policy.unknown)


def _why(fleet: Fleet, kind: Kind) -> str:
    if kind.value in fleet.rules.watched:
        return _NOT_LISTED
    return f"they are not watched; start the aggregator with --watch={kind.value}"


class VerdictsDisabled(Exception):
    """The aggregator runs without verdicts on waiting pods."""


class PendingNow(NamedTuple):
    """Waiting pods at `at_us`, by age, and all other pods with GPUs, by UID. Everything is immutable, or a copy.

    `finished` are the waits of the pods that were bound last, the latest at the end, also of those that are gone.
    `tenants` are those of pods that were never bound, by UID; `namespaces` are the names of all that are known.
    `running` are the pods that may lose work. `room`, `policy`, and the price `book` are empty unless they were asked
    for. `models` has the model of the nodes by the values of their model labels. `default_class` is that of pods that
    name none, "" for none. `packing` has the nodes of jobs, `uncreated` the workloads that lack pods. `findings` are
    those about the order of priorities, by the UID of the pod that waits. `gangs` are the partial ones, `deadlocks` the
    keys of those that wait for each other, and `not_compared` of those of which that is not known.
    `unaccounted` are the reasons why GPUs of pods are not accounted, by UID, and `unrecorded` the pods among them that
    may have no record. `sizes` are those of pods that wait, or have run in the last week.
    """

    at_us: int
    currency: str
    rules: Rules
    waiting: Sequence[WaitingPod]
    records: Mapping[str, PodRecord]
    tenants: Mapping[str, str]
    namespaces: Collection[str]
    running: RunningPods
    preempted: Mapping[str, Victim]
    finished: Sequence[PendingHistory]
    room: Room
    classes: Sequence[PriorityChoice]
    default_class: str
    policy: PolicyNow = NO_POLICY
    book: PriceBook | None = None
    models: Mapping[str, str] = {}
    packing: Mapping[Job, JobNodes] = {}
    uncreated: Workloads = Workloads()
    findings: Mapping[str, ClassFindings] = {}
    gangs: Sequence[PartialGang] = ()
    deadlocks: Sequence[Sequence[str]] = ()
    not_compared: Mapping[str, NotCompared] = {}
    unaccounted: Mapping[str, Sequence[UnaccountedEntry]] = {}
    unrecorded: Mapping[str, UnaccountedPod] = {}
    sizes: Collection[Size] = ()


def tenant_of(now: PendingNow, record: PodRecord) -> str:
    """The tenant of a pod: the one that it was bound for, else that of the rules."""
    return record.terms[-1].tenant if record.terms else now.tenants.get(record.uid, UNASSIGNED)


def read_pending(fleet: Fleet, *, now_us: int, with_room: bool) -> PendingNow:
    """The state at `now_us`; with a copy of the room only for what would help, as that takes milliseconds.

    Raises: VerdictsDisabled.
    """
    if not fleet.waiting.is_on:
        raise VerdictsDisabled
    fleet.reconcile()
    fleet.advance(now_us)
    fleet.waiting.judge(at_us=fleet.now_us)
    book, namespaces = fleet.pricing.book, fleet.pods.namespaces
    records = dict(fleet.pods.records)
    return PendingNow(
        at_us=fleet.now_us,
        currency=book.currency if book else "",
        rules=fleet.rules,
        waiting=fleet.waiting.pods(),
        records=records,
        tenants={uid: namespaces.tenant(each) for uid, each in records.items() if not each.terms},
        namespaces=frozenset(namespaces.known_marks),
        running=fleet.disrupted.lost_work.at_risk.running(),
        preempted=fleet.disrupted.preemptions.known,
        finished=tuple(fleet.waiting.book.finished),
        room=_copied_room(fleet, records) if with_room else Room(),
        classes=fleet.policy.classes.choices(),
        default_class=fleet.policy.classes.default(),
        policy=read_policy(fleet) if with_room else NO_POLICY,
        book=book if with_room else None,
        models=fleet.nodes.models(),
        packing=dict(fleet.waiting.fitting.packing.of),
        uncreated=fleet.uncreated.workloads(at_us=fleet.now_us),
        findings=fleet.waiting.findings.by_pod(),
        gangs=tuple(fleet.waiting.situations.partial_gangs.gangs.read().values()),
        deadlocks=tuple(fleet.waiting.situations.partial_gangs.found),
        not_compared=dict(fleet.waiting.situations.partial_gangs.skipped),
        unaccounted=dict(fleet.unaccounted.entries),
        unrecorded=dict(fleet.unaccounted.objects),
        sizes=fleet.waiting.fitting.asked.read(),
    )


def _copied_room(fleet: Fleet, records: Mapping[str, PodRecord]) -> Room:
    room = fleet.waiting.room.copy()
    room.budgets = read_budgets(fleet, records)
    return room
