"""The work that a preemption would destroy now, by job and by node."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Final, NamedTuple, TypeVar

from gputally.accounting.fleet.work_at_risk import NoRisk, RiskLine, RiskNow, pod_lines, risk_by_node, risk_lines
from gputally.accounting.lost_work.at_risk import PodAtRisk
from gputally.answers.parameters import unknown_values
from gputally.model.allocation import Segment
from gputally.model.api.at_risk import AtRiskDocument, JobAtRisk, NodeAtRisk, NotAtRisk, Risk
from gputally.model.pod_record import PodRecord
from gputally.model.units import COST_UNIT, GPU, GPU_HOUR, US_PER_SECOND, to_datetime

FILTERS: Final = ("namespace", "tier", "tenant", "job_kind", "job", "node")
"""Query parameters: only pods with one of the given values."""
_TEXTS: Final[Mapping[NoRisk, str]] = {
    NoRisk.NO_WORK: "they serve users or are placeholders, and have no work to lose",
    NoRisk.NOT_STARTED: "no container of them has started",
    NoRisk.RESTARTING: "their containers wait for a restart, and the work before it is lost",
    NoRisk.TERMINATING: "they are being deleted",
}

Key = TypeVar("Key", "_JobKey", str)
Value = TypeVar("Value")


class _JobKey(NamedTuple):
    namespace: str
    job_kind: str
    job: str
    tier: str
    tenant: str


def document(
    now: RiskNow, filters: Mapping[str, Collection[str]], *, tenants: Collection[str] | None
) -> AtRiskDocument:
    """The document of the pods that match all `filters`; `tenants` None for a user who may see all."""
    chosen = _Chosen(filters, tenants)
    pods = pod_lines(now, [pod for pod in now.running.at_risk() if chosen.has(_values(pod.record))])
    others = Counter(reason for record, reason in now.not_at_risk() if chosen.has(_values(record)))
    others[NoRisk.NOT_STARTED] += sum(chosen.has({name: getattr(pod, name) for name in FILTERS}) for pod in now.waiting)
    nodes = {pod.record.node: pod for pod, _ in pods}
    jobs = risk_lines(pods, lambda pod: _job_of(pod.record))
    by_node = risk_by_node(pods)
    total = risk_lines(pods, lambda _: "").get("")
    return AtRiskDocument(
        at=to_datetime(now.at_us),
        total=_risk(total, now) if total else None,
        jobs=[JobAtRisk(**key._asdict(), risk=_risk(line, now)) for key, line in _ordered(jobs, lambda line: line)],
        nodes=[
            _node(nodes[name], _risk(own, now), _risk(with_groups, now))
            for name, (own, with_groups) in _ordered(by_node, lambda lines: lines[1])
        ],
        not_at_risk=[
            NotAtRisk(reason=each.value, text=text, pods=others[each]) for each, text in _TEXTS.items() if others[each]
        ],
        unknown=[] if pods or others.total() else unknown_values(filters, chosen.known),
    )


class _Chosen:
    """The pods of the `tenants`, None for all, that match all `filters`.

    `known` are the values that any of these tenants' pods has, of those that were asked about so far.
    """

    def __init__(self, filters: Mapping[str, Collection[str]], tenants: Collection[str] | None) -> None:
        self.known: dict[str, set[str]] = {name: set() for name in FILTERS}
        self._filters = filters
        self._tenants = tenants

    def has(self, values: Mapping[str, str]) -> bool:
        """Whether the pod with these values is one of them."""
        if self._tenants is not None and values["tenant"] not in self._tenants:
            return False
        for name, value in values.items():
            self.known[name].add(value)
        return all(values[name] in allowed for name, allowed in self._filters.items())


def _values(record: PodRecord) -> dict[str, str]:
    """The columns that a filter can name."""
    return _job_of(record)._asdict() | {"node": record.node}


def _job_of(record: PodRecord) -> _JobKey:
    last = _last(record)
    return _JobKey(record.namespace, record.job_kind, record.job, last.tier, last.tenant)


def _last(record: PodRecord) -> Segment:
    """The segment whose tier, tenant and GPU model are those of the pod now."""
    return next((each for each in record.segments if each.end_us is None), record.segments[-1])


def _node(pod: PodAtRisk, own: Risk, with_groups: Risk) -> NodeAtRisk:
    last = _last(pod.record)
    return NodeAtRisk(node=pod.record.node, pool=last.pool, gpu_model=last.gpu_model, risk=own, with_groups=with_groups)


def _risk(line: RiskLine, now: RiskNow) -> Risk:
    oldest_us = now.at_us if line.oldest_us is None else line.oldest_us
    return Risk(
        pods=line.pods,
        gpus=line.quantity / GPU,
        gpu_hours=line.gpu_time / GPU_HOUR,
        costs={currency: _cost(cost) for currency, cost in sorted(line.costs.items())},
        unpriced_gpu_hours=line.unpriced / GPU_HOUR,
        oldest_checkpoint=to_datetime(oldest_us),
        checkpoint_age_seconds=max(0, now.at_us - oldest_us) / US_PER_SECOND,
        is_upper_bound=line.is_upper_bound,
        overdue_pods=line.overdue,
    )


def _cost(cost: int) -> str:
    return f"{Decimal(cost) / COST_UNIT:.6f}"


def _ordered(found: Mapping[Key, Value], line: Callable[[Value], RiskLine]) -> list[tuple[Key, Value]]:
    """The most GPU-time first."""
    return sorted(found.items(), key=lambda item: (-line(item[1]).gpu_time, item[0]))
