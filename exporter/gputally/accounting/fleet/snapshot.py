"""An immutable view of the fleet at one instant: the input of all metrics."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final

from msgspec import Struct

from gputally.accounting.base.limits import LimitOverflow
from gputally.accounting.disruptions.preemptions import Preempting, preempting
from gputally.accounting.fleet.active_pods import PendingShown
from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.lost_work.at_risk import WorkAtRisk
from gputally.accounting.nodes.inventory import Inventory
from gputally.accounting.prices.book import PriceBook
from gputally.accounting.terms.tier import TierLimits, limits_of, serves, tier_of, unmatched
from gputally.accounting.totals.series import Published
from gputally.accounting.totals.total import COSTS, GPU_TIMES, RECONCILED, Lines, Total
from gputally.accounting.totals.totals import Totals, capacity_by_state, offered_capacity
from gputally.accounting.uncreated.snapshot import UncreatedNow
from gputally.accounting.waiting.snapshot import PendingSums
from gputally.accounting.watched.unaccounted_pods import UnaccountedNow
from gputally.model.kube.kinds import Kind
from gputally.model.kube.policy import ClassVersion, QuotaUse
from gputally.model.node_record import CapacityState
from gputally.model.rules import Rules
from gputally.model.usage import Fault

MOST_CLASSES: Final = 100
"""Limit of exported PriorityClasses."""


class PendingPods(Struct, frozen=True, kw_only=True):
    """Pending pods of one tier and tenant; `quantity` in µGPU, `oldest_us` is the creation of the oldest."""

    pods: int
    quantity: int
    oldest_us: int


class Serving(Struct, frozen=True, kw_only=True):
    """Whether each tier serves user traffic, whether any should, and how many patterns match no tier (`unmatched`).

    `time_limits` are how long pods of a tier may be pending or starting before an alert.
    """

    tiers: Mapping[str, bool]
    time_limits: Mapping[str, TierLimits]
    expected: bool
    unmatched: int


class Snapshot(Struct, frozen=True, kw_only=True):
    """The fleet as published at `now_us`.

    `wanted` is the µGPU that pending pods request, by required GPU model, `any` for none. `differences` compare
    independently computed sums, in µs·µGPU, and must be 0; `cost_differences` do so with costs.
    `allocation_differences` are the µGPU that only the API server or only the kubelets report as allocated, by pool and
    side. `priority_classes` are the highest ones, each with its exported tier; `quotas` are by exported tier and
    tenant. `unused_after_preemption` are the µGPU that preemptions freed and no pod has taken since, by exported tier.
    `unknown_offers` are the nodes that offer unknown devices, by resource, or `other`. `waits` and `uncreated` are None
    if reasons are not determined. `starting` is when the first pod was bound of which no container has run, by exported
    tier and tenant.
    """

    now_us: int
    accounting_start_us: int
    totals: Mapping[Total, Published]
    tiers: tuple[str, ...]
    serving: Serving
    waiting: Mapping[tuple[str, str], PendingPods]
    wanted: Mapping[str, int]
    preempting: Mapping[tuple[str, str], Preempting]
    at_risk: WorkAtRisk
    unaccounted: UnaccountedNow
    unknown_offers: Mapping[str, int]
    without_tier: int
    without_tenant: int
    pods: int
    inventory: Inventory
    clock_skews: Mapping[str, int]
    refusals: Mapping[str, int]
    limit_overflow: Mapping[Kind, LimitOverflow]
    differences: Mapping[str, int]
    cost_differences: Mapping[str, int]
    allocation_differences: Mapping[tuple[str, str], int]
    agent_restarts: int
    usage_faults: Mapping[Fault, int]
    repeat_victims: Mapping[tuple[str, str], int]
    priority_classes: tuple[tuple[str, ClassVersion], ...] = ()
    quotas: Mapping[tuple[str, str], QuotaUse] = {}
    unused_after_preemption: Mapping[str, int] = {}
    waits: PendingSums | None = None
    uncreated: UncreatedNow | None = None
    starting: Mapping[tuple[str, str], int] = {}
    book: PriceBook | None = None


def publish(fleet: Fleet, *, now_us: int, ledger: Lines) -> Snapshot:
    """Evaluate the fleet at `now_us`. From then on, no counter is published below this snapshot.

    `ledger` are the live sums minus those of the ledger's rows, without those that are not known.
    """
    totals, evaluated_us, pending = _published(fleet, now_us), fleet.totals.evaluated_us, PendingShown(fleet)
    tiers, waiting = _tiers(fleet, totals), _waiting(pending)
    return Snapshot(
        now_us=evaluated_us,
        accounting_start_us=fleet.totals.accounting_start_us,
        totals=totals,
        tiers=tiers,
        serving=_serving({*tiers, *(tier for tier, _ in waiting)}, fleet.rules),
        waiting=waiting,
        wanted=_wanted(pending, fleet),
        preempting=preempting(fleet.disrupted.preemptions.unreleased, partial(fleet.limiter.shown, "tier")),
        at_risk=fleet.disrupted.lost_work.at_risk.read(evaluated_us),
        unaccounted=fleet.unaccounted.read(),
        unknown_offers=fleet.unknown_offers.read(),
        without_tier=len(fleet.pods.index.without_tier),
        without_tenant=len(fleet.pods.index.without_tenant),
        pods=len(fleet.pods.records),
        inventory=fleet.nodes.inventory(at_us=evaluated_us),
        clock_skews=fleet.pods.index.clocks.worst(fleet.nodes.has),
        refusals=dict(fleet.limiter.refusals),
        limit_overflow=fleet.limit_overflow(),
        differences=_differences(fleet.totals, totals, ledger),
        cost_differences=_cost_differences(fleet.totals, totals, ledger),
        allocation_differences=fleet.usage.allocation_differences(now_us),
        agent_restarts=fleet.usage.restarts,
        usage_faults=dict(fleet.usage.pending.faults),
        repeat_victims=fleet.disrupted.disruptions.repeat_victims.counted(evaluated_us),
        priority_classes=tuple(_classes(fleet)),
        quotas=fleet.policy.quotas.read(),
        unused_after_preemption=fleet.disrupted.disruptions.unused.read(fleet.nodes.known),
        waits=fleet.waiting.read(),
        uncreated=fleet.uncreated.read(),
        starting=fleet.pods.index.starting.oldest(),
        book=fleet.pricing.book,
    )


def _published(fleet: Fleet, now_us: int) -> Mapping[Total, Published]:
    fleet.reconcile()
    fleet.advance(now_us)
    fleet.catch_up()
    fleet.known_series.declare(at_us=now_us)
    return fleet.totals.publish(now_us)


def _tiers(fleet: Fleet, totals: Mapping[Total, Published]) -> tuple[str, ...]:
    """All exported tiers, with `other` once a pod of a refused tier was bound."""
    bound = {labels[0] for labels in totals[Total.SCHEDULED].labels}
    return tuple(sorted(fleet.limiter.values["tier"].keys() | bound))


def _classes(fleet: Fleet) -> Iterator[tuple[str, ClassVersion]]:
    """The highest classes with their tiers; those of the system are the same everywhere."""
    own = list(fleet.policy.classes.own())
    for each in sorted(own, key=lambda each: (-each.value, each.name))[:MOST_CLASSES]:
        yield fleet.limiter.shown("tier", tier_of(each.name, each.value, fleet.rules)), each


def _serving(tiers: AbstractSet[str], rules: Rules) -> Serving:
    found = {tier: serves(tier, rules) for tier in tiers}
    limits = {tier: limits_of(tier, rules) for tier in tiers}
    return Serving(tiers=found, time_limits=limits, expected=bool(rules.serving), unmatched=unmatched(tiers, rules))


def _wanted(pending: PendingShown, fleet: Fleet) -> dict[str, int]:
    """With 0 for known GPU models that no pending pod requires."""
    wanted = dict.fromkeys(sorted(fleet.limiter.values["gpu_model"]), 0)
    for required, (_, quantity) in sorted(fleet.pods.index.pending_groups.wanted.items()):
        model = pending.model(required)
        wanted[model] = wanted.get(model, 0) + quantity
    return wanted


def _waiting(pending: PendingShown) -> dict[tuple[str, str], PendingPods]:
    """Pending pods by exported (tier, tenant)."""
    found: dict[tuple[str, str], PendingPods] = {}
    for oldest_us, group in pending.groups:
        shown = pending.labels(group)
        before = found.get(shown, PendingPods(pods=0, quantity=0, oldest_us=oldest_us))
        found[shown] = PendingPods(
            pods=before.pods + len(group.created_us),
            quantity=before.quantity + group.quantity,
            oldest_us=min(before.oldest_us, oldest_us),
        )
    return found


def _differences(totals: Totals, published: Mapping[Total, Published], ledger: Lines) -> dict[str, int]:
    """Allocated by tier and by node; capacity by state and by facts; counters and ledger."""
    now_us = totals.evaluated_us
    states = capacity_by_state(totals, Total.CAPACITY, at_us=now_us)
    return {
        "allocated": sum(published[Total.ALLOCATED].truths)
        + totals.withheld(Total.ALLOCATED)
        - states.get(CapacityState.ALLOCATED, 0),
        "capacity": sum(published[Total.PHYSICAL].truths) - offered_capacity(states),
    } | _from_ledger(ledger, GPU_TIMES, now_us)


def _cost_differences(totals: Totals, published: Mapping[Total, Published], ledger: Lines) -> dict[str, int]:
    """The costs of capacity by state and by facts; of counters and ledger."""
    states = capacity_by_state(totals, Total.CAPACITY_COST, at_us=totals.evaluated_us)
    capacity = sum(published[Total.PHYSICAL_COST].truths) - offered_capacity(states)
    return {"capacity": capacity} | _from_ledger(ledger, COSTS, totals.evaluated_us)


def _from_ledger(ledger: Lines, families: Iterable[Total], now_us: int) -> dict[str, int]:
    """The differences of these families, by the name of the check."""
    return {RECONCILED[each]: ledger[each][0] + ledger[each][1] * now_us for each in families if each in ledger}
