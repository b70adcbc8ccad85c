"""Records of the preemptions of jobs for the owners of the victims: who, by which rule, and what it cost."""

import re
from collections.abc import Iterable
from datetime import datetime, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Final

from msgspec import Struct, structs

from gputally.frameworks.kueue import RULE_WORDS, QueueRule
from gputally.model.disruptions import Preemption, Preemptor
from gputally.model.lost_work import CheckpointSource
from gputally.model.units import COST_UNIT, GPU_HOUR, to_datetime
from gputally.reports.disruptions import PLACES, gpu_hours_of
from gputally.reports.job_preemptions import JobLoss, JobPreemption
from gputally.reports.preemption_advice import Advice, advice_for, hours
from gputally.reports.rounding import decimal_of, gpus

_UNSAFE: Final = re.compile(r"[^\w.:,;/() -]")
"""Characters that a chat may take for markup or a mention: whoever creates a pod chooses the name of its owner."""


def rule_of(found: Preemption | None, *, tiers_only: bool) -> str:
    """The rule in words; with `tiers_only` without class and priority of the preemptor."""
    if found is not None and found.queue_rule:
        return _rule_of_queue(found, found.queue_rule, tiers_only=tiers_only)
    if found is None or found.preemptor is None or found.is_permitted is None:
        return "not known"
    victim = _priority(found.victim_priority, found.victim_class)
    by = _preemptor(found.preemptor, tier=found.preemptor_tier if tiers_only else None)
    if found.is_permitted:
        return f"{by} is above {victim}" + ("" if tiers_only else ", policy PreemptLowerPriority")
    if not found.preemptor.may_preempt:
        return f"not permitted: {by} has the policy Never"
    return f"not permitted: {by} is not above {victim}"


def _rule_of_queue(found: Preemption, rule: str, *, tiers_only: bool) -> str:
    """The rule of Kueue; within a ClusterQueue it follows from the priorities of both workloads there.

    A ledger may have rules that a later version wrote.
    """
    text = f"{rule} ({RULE_WORDS[rule]})" if rule in RULE_WORDS else rule
    theirs, own = found.preemptor_priority, found.victim_priority
    if rule != QueueRule.IN_CLUSTER_QUEUE or theirs is None or own is None:
        return text
    by = f"tier {found.preemptor_tier}" if tiers_only else f"priority {theirs}"
    return f"{text}: {by} before priority {own}"


def _preemptor(found: Preemptor, *, tier: str | None) -> str:
    """The preemptor by class and priority, or only as one of this tier."""
    return _priority(found.priority, found.class_name) if tier is None else f"the priority of tier {tier}"


def _priority(value: int | None, class_name: str) -> str:
    return f"priority {value} {f'of class {class_name}' if class_name else 'without a class'}"


class JobPreemptionRow(Struct, frozen=True, kw_only=True):
    """The preemption of one job; times are ISO 8601, and None if not reached or not known.

    `id` identifies it; it never changes, and no pod is in two of them. `released` is when the last pod had released its
    GPUs, `replaced` when the replacements of all pods ran. Of preemptors, `preemptors` are namespaces and names, None
    for users restricted to tenants, and `rules` say why each could preempt; `is_permitted` is None if priorities do not
    say that. The lost work is that of `lost_pods`, the victims and the pods that restarted with them; it is an upper
    bound if no checkpoint of a victim is known. `advice` is what would have prevented it, or made it cheaper, as far as
    that follows from the data. Before `is_final`, lost work and preemptors may change.
    """

    id: str
    decided: datetime
    namespace: str
    job_kind: str
    job: str
    tier: str
    tenant: str
    pods: list[str]
    nodes: list[str]
    gpus: Decimal
    requested: datetime | None
    released: datetime | None
    replaced: datetime | None
    preemptor_tiers: list[str]
    preemptors: list[str] | None
    is_preemptor_inferred: bool
    rules: list[str]
    is_permitted: bool | None
    lost_gpu_hours: Decimal | None = None
    lost_costs: dict[str, Decimal] | None = None
    lost_basis: list[str] | None = None
    is_lost_upper_bound: bool | None = None
    lost_pods: int | None = None
    stalled_gpu_hours: Decimal | None = None
    is_final: bool
    advice: list[Advice]


def record_row(found: JobPreemption, zone: tzinfo, *, now_us: int, tiers_only: bool) -> JobPreemptionRow:
    """The record as of `now_us`, in this time zone; with `tiers_only` without names and priorities of preemptors."""

    def at(us: int | None) -> datetime | None:
        return None if us is None else to_datetime(us).astimezone(zone)

    first, disruptions = found.victims[0].victim, [each.victim for each in found.victims]
    by = [each.by for each in disruptions if each.by]
    preemptors = [each.preemptor for each in by if each.preemptor]
    row = JobPreemptionRow(
        id=found.id,
        decided=to_datetime(found.decided_us).astimezone(zone),
        namespace=first.victim_namespace,
        job_kind=first.job_kind,
        job=first.job,
        tier=first.victim_tier,
        tenant=first.victim_tenant,
        pods=[each.victim_name for each in disruptions],
        nodes=_unique(each.node for each in disruptions),
        gpus=gpus(sum(each.quantity for each in disruptions)),
        requested=at(min((each.requested_us for each in disruptions if each.requested_us is not None), default=None)),
        released=at(found.released_us),
        replaced=at(found.replaced_us),
        preemptor_tiers=_unique(each.preemptor_tier for each in by),
        preemptors=None if tiers_only else _unique(f"{each.namespace}/{each.name}" for each in preemptors if each.name),
        is_preemptor_inferred=any(each.is_inferred for each in preemptors),
        rules=_unique(rule_of(each.by, tiers_only=tiers_only) for each in disruptions),
        is_permitted=found.is_permitted,
        is_final=found.is_final(now_us=now_us),
        advice=list(advice_for(found, tiers_only=tiers_only)),
    )
    return _with_loss(row, found.loss) if found.loss else row


def record_text(row: JobPreemptionRow) -> str:
    """The record in sentences, for a chat; characters that may be markup are replaced."""
    pods = f"pod {row.pods[0]}" if len(row.pods) == 1 else f"{len(row.pods)} pods"
    by = f"pods of tier {', '.join(row.preemptor_tiers)}" if row.preemptor_tiers else "pods that are not known"
    head = (
        f"{row.namespace}/{row.job_kind}/{row.job} of tier {row.tier}: {pods} with {row.gpus:f} GPUs preempted at "
        f"{row.decided:%Y-%m-%d %H:%M:%S %Z} by {by}."
    )
    advice = [each.text for each in row.advice] or ["Nothing that gputally knows of would have prevented it."]
    return _UNSAFE.sub("?", " ".join((head, f"Rule: {'; '.join(row.rules)}.", _loss_text(row), *advice)))


def _loss_text(row: JobPreemptionRow) -> str:
    if row.lost_gpu_hours is None:
        return "Lost work is not known yet."
    if row.lost_basis == [CheckpointSource.NO_WORK]:
        return "It had no work to lose."
    up_to = "up to " if row.is_lost_upper_bound else ""
    costs = "".join(f", {up_to}{cost:.2f} {currency}" for currency, cost in (row.lost_costs or {}).items())
    return f"Lost: {up_to}{hours(int(row.lost_gpu_hours * GPU_HOUR))} GPU-hours{costs}."


def _with_loss(row: JobPreemptionRow, loss: JobLoss) -> JobPreemptionRow:
    return structs.replace(
        row,
        lost_gpu_hours=gpu_hours_of(loss.gpu_time),
        lost_costs={currency: decimal_of(Fraction(cost, COST_UNIT), PLACES) for currency, cost in loss.costs.items()},
        lost_basis=list(loss.bases),
        is_lost_upper_bound=loss.is_upper_bound,
        lost_pods=loss.pods,
        stalled_gpu_hours=gpu_hours_of(loss.stalled_gpu_time),
    )


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
