"""The work at risk of single pods, added up."""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from msgspec import Struct, field

from gputally.accounting.fleet import Fleet
from gputally.accounting.groups.pod_group import OnLoss, PodGroup, group_of
from gputally.accounting.lost_work.at_risk import PodAtRisk
from gputally.accounting.lost_work.losses import costs_of_spans, gpu_time_of
from gputally.accounting.lost_work.pod_work import spans_of
from gputally.model.work.checkpoint import CheckpointSource

Key = TypeVar("Key", bound=Hashable)


class RiskNow(NamedTuple):
    """All running pods at `at_us`, and the UIDs of those whose checkpoint is overdue; any thread may add them up."""

    pods: Collection[PodAtRisk]
    overdue: Collection[str]
    at_us: int


class RiskLine(Struct, kw_only=True):
    """The sum of some pods: quantities in µGPU, GPU-time in µs·µGPU, exact costs (see `COST_UNIT`) by currency."""

    pods: int = 0
    quantity: int = 0
    gpu_time: int = 0
    unpriced: int = 0
    costs: dict[str, int] = field(default_factory=dict)
    oldest_us: int | None = None
    is_upper_bound: bool = False
    overdue: int = 0


def read_risk(fleet: Fleet, *, now_us: int) -> RiskNow:
    """The pods at `now_us`."""
    fleet.reconcile()
    fleet.advance(now_us)
    at_risk = fleet.ends.lost_work.at_risk
    overdue = {each.record.uid for each in at_risk.overdue(fleet.now_us)}
    return RiskNow(at_risk.pods(), overdue, fleet.now_us)


def risk_lines(now: RiskNow, pods: Iterable[PodAtRisk], key: Callable[[PodAtRisk], Key]) -> dict[Key, RiskLine]:
    """The sums of these pods by key."""
    found: defaultdict[Key, RiskLine] = defaultdict(RiskLine)
    for each in pods:
        add_pod(found[key(each)], each, now)
    return dict(found)


def risk_by_node(now: RiskNow, pods: Collection[PodAtRisk]) -> Mapping[str, tuple[RiskLine, RiskLine]]:
    """By node, the sum of its pods, and of these with the pods elsewhere that restart with any of them."""
    own = risk_lines(now, pods, lambda each: each.record.node)
    members: defaultdict[PodGroup, list[PodAtRisk]] = defaultdict(list)
    for each in pods:
        if (group := group_of(each.record)) and group.on_loss is OnLoss.RESTART:
            members[group].append(each)
    all_lines = risk_lines(now, pods, lambda each: each.record.node)
    for found in members.values():
        for node in {each.record.node for each in found}:
            for each in found:
                if each.record.node != node:
                    add_pod(all_lines[node], each, now)
    return {node: (line, all_lines[node]) for node, line in own.items()}


def add_pod(line: RiskLine, pod: PodAtRisk, now: RiskNow) -> None:
    """Add a pod to a sum."""
    spans = tuple(spans_of(pod.record, until_us=now.at_us))
    line.pods += 1
    line.quantity += sum(each.quantity for each in pod.record.segments if each.end_us is None)
    line.gpu_time += gpu_time_of(spans, from_us=pod.from_us)
    line.unpriced += gpu_time_of((each for each in spans if each.price is None), from_us=pod.from_us)
    for currency, cost in costs_of_spans(spans, from_us=pod.from_us).items():
        line.costs[currency] = line.costs.get(currency, 0) + cost
    line.oldest_us = pod.from_us if line.oldest_us is None else min(line.oldest_us, pod.from_us)
    line.is_upper_bound |= pod.basis is CheckpointSource.START
    line.overdue += pod.record.uid in now.overdue
