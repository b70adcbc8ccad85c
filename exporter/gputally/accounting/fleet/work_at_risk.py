"""Adds up the work at risk of single pods."""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeVar

from msgspec import Struct, field

from gputally.accounting.fleet.active_pods import ActivePod, pending
from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.lost_work.at_risk import PodAtRisk, RunningPods
from gputally.accounting.lost_work.container_restarts import WAITING
from gputally.accounting.lost_work.work_since_checkpoint import costs_of_spans, gpu_time_of, spans_of
from gputally.frameworks.framework import OnLoss
from gputally.frameworks.groups import PodGroup, group_of
from gputally.model.lost_work import CheckpointSource
from gputally.model.pod_record import PodRecord

Key = TypeVar("Key", bound=Hashable)


class NoRisk(StrEnum):
    """Why a preemption of a pod would destroy no work now."""

    NO_WORK = "no_work"
    """The pod serves users, or is a placeholder."""
    NOT_STARTED = "not_started"
    """No container of it has started."""
    RESTARTING = "restarting"
    """The containers wait for their next run; the work of the last one is lost."""
    TERMINATING = "terminating"
    """The pod is being deleted."""


class RiskNow(NamedTuple):
    """Running pods at `at_us`, and the UIDs of those whose checkpoint is overdue; any thread may add them up.

    `records` are all pods with GPUs, also those that would lose nothing, and `waiting` those without a node; the
    containers of those with the UIDs `restarting` wait for their next run.
    """

    running: RunningPods
    overdue: Collection[str]
    at_us: int
    records: Mapping[str, PodRecord]
    waiting: Sequence[ActivePod]
    restarting: Collection[str]

    def not_at_risk(self) -> Iterator[tuple[PodRecord, NoRisk]]:
        """The pods that hold GPUs and would lose nothing, and why."""
        for uid, record in self.records.items():
            if uid not in self.running.records and record.end_us is None and record.segments:
                yield record, self._why_not(record)

    def _why_not(self, record: PodRecord) -> NoRisk:
        if record.deletion_us is not None:
            return NoRisk.TERMINATING
        if record.started_us is None:
            return NoRisk.NOT_STARTED
        return NoRisk.RESTARTING if record.uid in self.restarting else NoRisk.NO_WORK


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

    def add(self, other: "RiskLine") -> None:
        """Add other pods."""
        self.pods += other.pods
        self.quantity += other.quantity
        self.gpu_time += other.gpu_time
        self.unpriced += other.unpriced
        for currency, cost in other.costs.items():
            self.costs[currency] = self.costs.get(currency, 0) + cost
        if other.oldest_us is not None:
            self.oldest_us = other.oldest_us if self.oldest_us is None else min(self.oldest_us, other.oldest_us)
        self.is_upper_bound |= other.is_upper_bound
        self.overdue += other.overdue


PodLines = Collection[tuple[PodAtRisk, RiskLine]]
"""Each pod with its own work."""


def read_risk(fleet: Fleet, *, now_us: int) -> RiskNow:
    """The pods at `now_us`."""
    fleet.reconcile()
    fleet.advance(now_us)
    part = fleet.disrupted.lost_work
    return RiskNow(
        running=part.at_risk.running(),
        overdue={each.record.uid for each in part.at_risk.overdue(fleet.now_us)},
        at_us=fleet.now_us,
        records=dict(fleet.pods.records),
        waiting=pending(fleet),
        restarting={uid for uid, each in part.container_restarts.known.items() if each.since_us == WAITING},
    )


def pod_lines(now: RiskNow, pods: Iterable[PodAtRisk]) -> PodLines:
    """The work of each of these pods."""
    return [(each, line_of(each, at_us=now.at_us, is_overdue=each.record.uid in now.overdue)) for each in pods]


def line_of(pod: PodAtRisk, *, at_us: int, is_overdue: bool = False) -> RiskLine:
    """The work of one pod at `at_us`."""
    spans = tuple(spans_of(pod.record, until_us=at_us))
    return RiskLine(
        pods=1,
        quantity=sum(each.quantity for each in pod.record.segments if each.end_us is None),
        gpu_time=gpu_time_of(spans, from_us=pod.from_us),
        unpriced=gpu_time_of((each for each in spans if each.price is None), from_us=pod.from_us),
        costs=costs_of_spans(spans, from_us=pod.from_us),
        oldest_us=pod.from_us,
        is_upper_bound=pod.basis is CheckpointSource.START,
        overdue=is_overdue,
    )


def risk_lines(pods: PodLines, key: Callable[[PodAtRisk], Key]) -> dict[Key, RiskLine]:
    """The sums of these pods by key."""
    found: defaultdict[Key, RiskLine] = defaultdict(RiskLine)
    for pod, line in pods:
        found[key(pod)].add(line)
    return dict(found)


def risk_by_node(pods: PodLines) -> Mapping[str, tuple[RiskLine, RiskLine]]:
    """For each node, the sum of its pods, and of these with the pods elsewhere that restart with any of them."""
    with_groups, groups = defaultdict[str, RiskLine](RiskLine), defaultdict[PodGroup, RiskLine](RiskLine)
    nodes = defaultdict[PodGroup, set[str]](set)
    for pod, line in pods:
        if (group := group_of(pod.record)) and group.on_loss is OnLoss.RESTART:
            groups[group].add(line)
            nodes[group].add(pod.record.node)
        else:
            with_groups[pod.record.node].add(line)
    for group, line in groups.items():
        for node in nodes[group]:
            with_groups[node].add(line)
    own = risk_lines(pods, lambda each: each.record.node)
    return {node: (line, with_groups[node]) for node, line in own.items()}
