"""Pods that lost their GPUs involuntarily, each with its preemptor and the cascade that it is part of."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Final, NamedTuple

from msgspec import Struct, structs

from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import Window
from gputally.model.disruptions import CAUSES, Cause, Preemption, VictimRecord
from gputally.model.lost_work import LostWork
from gputally.model.units import COST_UNIT, GPU_HOUR, US_PER_HOUR, US_PER_SECOND, duration_text, to_datetime
from gputally.reports.preemption_value import PreemptionValue, read_values
from gputally.reports.query import ReportQuery
from gputally.reports.rounding import decimal_of, gpus

LINKED: Final = CAUSES - {Cause.DELETION, Cause.CONTAINER_RESTART}
"""Causes for which a pod needs new GPUs."""
PLACES: Final = 6
"""Decimals of GPU-hours and costs."""


class CascadeLink(NamedTuple):
    """The disruption that one `follows` in a cascade, None for the `first`, which both are UIDs of victims."""

    follows: str | None
    first: str


def cascade_links(disruptions: Iterable[VictimRecord]) -> dict[str, CascadeLink]:
    """The links of those in a cascade, by UID of the victim.

    A preemption follows the disruption whose victim was replaced by the pod that it made room for.
    """
    by_uid = {each.victim_uid: each for each in disruptions if each.cause in LINKED}
    replaced = {each.replacement_uid: uid for uid, each in by_uid.items() if each.replacement_uid}
    follows = dict(_follows(by_uid, replaced))
    uids = {*follows, *follows.values()}
    return {uid: CascadeLink(follows.get(uid), _first(uid, follows)) for uid in uids}


def _first(uid: str, follows: Mapping[str, str]) -> str:
    seen = {uid}
    while (before := follows.get(uid)) and before not in seen:  # times have whole seconds, so there may be circles
        seen.add(before)
        uid = before
    return uid


def _follows(by_uid: Mapping[str, VictimRecord], replaced: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each preemption, and the one that it follows: the latest, if a queue made room for several replacements."""
    for uid, each in by_uid.items():
        takers = each.by.takers if each.by else None
        earlier = [replaced[taker] for taker in takers or () if taker in replaced]
        earlier = [before for before in earlier if by_uid[before].decided_us <= each.decided_us and before != uid]
        if earlier:
            yield uid, max(earlier, key=lambda before: (by_uid[before].decided_us, before))


class DisruptionLine(Struct, frozen=True):
    """A disruption, what it destroyed, and of a preemption, what it bought, as far as read.

    If it is in a `cascade`, which others of it precede it.
    """

    victim: VictimRecord
    lost: LostWork | None
    value: PreemptionValue | None = None
    cascade: CascadeLink | None = None


def read_disruptions(
    reader: LedgerReader, query: ReportQuery, causes: Collection[Cause], *, until_us: int | None = None
) -> Iterator[DisruptionLine]:
    """The disruptions decided in the window, in the order of time, that match all filters. Raises: LedgerError.

    Their values count up to `until_us`, by default the end of the ledger.
    """
    window = query.window
    wide = Window(window.start_us - US_PER_HOUR, window.end_us + US_PER_HOUR)  # links reach an hour beyond it
    every = list(reader.disruptions(wide, causes=LINKED | set(causes)))
    links = cascade_links(every)
    found = [each for each in every if window.start_us <= each.decided_us < window.end_us]
    lost = reader.lost_work(window, causes=causes)
    values = read_values(reader, found, until_us=until_us)
    for each in found:
        if each.cause in causes and query.includes(victim_values(each)):
            uid = each.victim_uid
            yield DisruptionLine(each, lost.get(uid), values.get(uid), links.get(uid))


def victim_values(each: VictimRecord) -> Mapping[str, str]:
    """The columns that a filter can name."""
    return {
        "tier": each.victim_tier,
        "tenant": each.victim_tenant,
        "namespace": each.victim_namespace,
        "pod": each.victim_name,
        "job_kind": each.job_kind,
        "job": each.job,
        "node": each.node,
    }


class PreemptionRow(Struct, frozen=True, kw_only=True):
    """One disrupted pod; times are ISO 8601, and None if not reached or not known.

    `id` identifies the disruption: it is the UID of the victim, which is disrupted once. With the cause
    `container_restart`, a row has all restarts of a pod within an hour: `id` is the UID and the time of the first one,
    and `lost_pods` is how many they are. `grace_exceeded_seconds` is
    how much longer than its grace period the victim had its GPUs. `budget_violated` says whether a PodDisruptionBudget
    allowed no disruption when it was decided, None where that is not known. The preemptor is None for other causes; an
    inferred one was named by no Event, but was the only pod nominated to the node at that time. The lost work is that
    of `lost_pods`, the victim and the pods that restarted with it. It is an upper bound if no checkpoint is known, and
    final once it is known what became of the group; `lost_gpu_hours_at` is what would have been lost with a
    checkpoint every so often. Of the victim's GPUs, the preemptor took `taken_gpus`, which it has had for
    `bought_gpu_hours`; they were stranded from their release until a pod was bound to them.

    The preemptor of one that `follows` another replaced the victim of that one; `cascade` is the first of them all.

    A queue that preempted the victim's workload by its `queue_rule` did so for a workload: `preemptor_kind`,
    `preemptor_namespace` and `preemptor` are its job, and `preemptor_uid` is its Workload.
    """

    id: str
    decided: datetime
    cause: str
    is_certain: bool
    namespace: str
    pod: str
    job_kind: str
    job: str
    tier: str
    tenant: str
    node: str
    gpus: Decimal
    requested: datetime | None
    stopped: datetime | None
    released: datetime | None
    reused: datetime | None
    replaced: datetime | None
    replacement_uid: str
    stop_seconds: Decimal | None
    replace_seconds: Decimal | None
    grace_seconds: Decimal | None
    grace_exceeded_seconds: Decimal | None
    budget_violated: bool | None
    lost_gpu_hours: Decimal | None = None
    lost_costs: dict[str, Decimal] | None = None
    lost_basis: str | None = None
    is_lost_upper_bound: bool | None = None
    lost_pods: int | None = None
    lost_gpu_hours_at: dict[str, Decimal] | None = None
    stalled_gpu_hours: Decimal | None = None
    is_lost_final: bool | None = None
    taken_gpus: Decimal | None = None
    bought_gpu_hours: Decimal | None = None
    stranded_gpu_hours: Decimal | None = None
    preemptor_tier: str | None = None
    preemptor_namespace: str | None = None
    preemptor: str | None = None
    preemptor_uid: str | None = None
    is_preemptor_inferred: bool | None = None
    preemptor_tenant: str | None = None
    preemptor_kind: str | None = None
    preemptor_gpus: Decimal | None = None
    queue_rule: str | None = None
    follows: str | None = None
    cascade: str | None = None


def preemption_row(line: DisruptionLine, zone: tzinfo, *, tiers_only: bool) -> PreemptionRow:
    """The row in this time zone; with `tiers_only`, of preemptors only the tier and the GPUs that they took."""
    row = _with_preemptor(_row(line, zone), line.victim.by, tiers_only=tiers_only)
    if line.value:
        row = _with_value(row, line.value, tiers_only=tiers_only)
    if line.cascade:
        row = structs.replace(row, follows=line.cascade.follows, cascade=line.cascade.first)
    return _with_lost_work(row, line.lost) if line.lost else row


def _row(line: DisruptionLine, zone: tzinfo) -> PreemptionRow:
    each = line.victim

    def at(us: int | None) -> datetime | None:
        return None if us is None else to_datetime(us).astimezone(zone)

    return PreemptionRow(
        id=each.victim_uid,
        decided=to_datetime(each.decided_us).astimezone(zone),
        cause=each.cause.value,
        is_certain=each.is_certain,
        namespace=each.victim_namespace,
        pod=each.victim_name,
        job_kind=each.job_kind,
        job=each.job,
        tier=each.victim_tier,
        tenant=each.victim_tenant,
        node=each.node,
        gpus=gpus(each.quantity),
        requested=at(each.requested_us),
        stopped=at(each.stopped_us),
        released=at(each.released_us),
        reused=at(each.reused_us),
        replaced=at(each.replaced_us),
        replacement_uid=each.replacement_uid,
        stop_seconds=_seconds(each.requested_us, each.stopped_us),
        replace_seconds=_seconds(each.decided_us, each.replaced_us),
        grace_seconds=_seconds(0, each.grace_us),
        grace_exceeded_seconds=_seconds(0, each.grace_exceeded_us),
        budget_violated=each.budget_violated,
    )


def _with_preemptor(row: PreemptionRow, by: Preemption | None, *, tiers_only: bool) -> PreemptionRow:
    if by is None:
        return row
    found, quantity = by.preemptor, by.workload.quantity if by.workload else None
    row = structs.replace(
        row,
        preemptor_tier=by.preemptor_tier,
        is_preemptor_inferred=bool(found and found.is_inferred),
        preemptor_gpus=None if quantity is None else gpus(quantity),
        queue_rule=by.queue_rule or None,
    )
    if tiers_only or found is None:
        return row
    return structs.replace(
        row,
        preemptor_namespace=found.namespace,
        preemptor=found.name,
        preemptor_uid=found.uid,
        preemptor_tenant=found.tenant if found.tier else None,
        preemptor_kind=found.kind or None,
    )


def _seconds(from_us: int | None, to_us: int | None) -> Decimal | None:
    if from_us is None or to_us is None:
        return None
    return Decimal(f"{(Decimal(max(0, to_us - from_us)) / US_PER_SECOND).normalize():f}")


def _with_lost_work(row: PreemptionRow, lost: LostWork) -> PreemptionRow:
    return structs.replace(
        row,
        lost_gpu_hours=gpu_hours_of(lost.gpu_time),
        lost_costs={currency: decimal_of(Fraction(cost, COST_UNIT), PLACES) for currency, cost in lost.costs},
        lost_basis=lost.basis.value,
        is_lost_upper_bound=lost.is_upper_bound,
        lost_pods=lost.members,
        lost_gpu_hours_at={
            duration_text(every_us // US_PER_SECOND): gpu_hours_of(amount) for every_us, amount in lost.at_intervals
        },
        stalled_gpu_hours=gpu_hours_of(lost.stalled_gpu_time),
        is_lost_final=lost.is_final,
    )


def _with_value(row: PreemptionRow, value: PreemptionValue, *, tiers_only: bool) -> PreemptionRow:
    return structs.replace(
        row,
        taken_gpus=None if value.taken is None else gpus(value.taken),
        bought_gpu_hours=None if value.bought is None or tiers_only else gpu_hours_of(value.bought),
        stranded_gpu_hours=gpu_hours_of(value.stranded),
    )


def gpu_hours_of(gpu_time: int) -> Decimal:
    """GPU-hours with the decimals of a row."""
    return decimal_of(Fraction(gpu_time, GPU_HOUR), PLACES)


class TierTotal(Struct, frozen=True, kw_only=True):
    """All preemptions by pods of one tier. Of `valued_preemptions`, it is known what the preemptor bought.

    The lost work is an upper bound if that of any preemption is. `bought_gpu_hours` is None if that is none of them, or
    not to be shown.
    """

    preemptor_tier: str
    preemptions: int
    preempted_gpus: Decimal
    lost_gpu_hours: Decimal
    is_lost_upper_bound: bool
    stalled_gpu_hours: Decimal
    bought_gpu_hours: Decimal | None
    valued_preemptions: int
    stranded_gpu_hours: Decimal


class _TierSum(Struct, kw_only=True):
    """Quantity in µGPU, and GPU-time in µs·µGPU."""

    preemptions: int = 0
    quantity: int = 0
    lost: int = 0
    is_upper_bound: bool = False
    stalled: int = 0
    bought: int = 0
    valued: int = 0
    stranded: int = 0


def tier_totals(lines: Iterable[DisruptionLine], *, tiers_only: bool) -> list[TierTotal]:
    """Totals by the tier of the preemptor; with `tiers_only` without what preemptors had."""
    sums: defaultdict[str, _TierSum] = defaultdict(_TierSum)
    for line in lines:
        if line.victim.by:
            _add(sums[line.victim.by.preemptor_tier], line)
    return [_total(tier, sums[tier], tiers_only=tiers_only) for tier in sorted(sums)]


def _add(found: _TierSum, line: DisruptionLine) -> None:
    found.preemptions += 1
    found.quantity += line.victim.quantity
    if line.lost:
        found.lost += line.lost.gpu_time
        found.is_upper_bound |= line.lost.is_upper_bound
        found.stalled += line.lost.stalled_gpu_time
    if line.value:
        found.stranded += line.value.stranded
        if line.value.bought is not None:
            found.bought += line.value.bought
            found.valued += 1


def _total(tier: str, found: _TierSum, *, tiers_only: bool) -> TierTotal:
    return TierTotal(
        preemptor_tier=tier,
        preemptions=found.preemptions,
        preempted_gpus=gpus(found.quantity),
        lost_gpu_hours=gpu_hours_of(found.lost),
        is_lost_upper_bound=found.is_upper_bound,
        stalled_gpu_hours=gpu_hours_of(found.stalled),
        bought_gpu_hours=None if tiers_only or not found.valued else gpu_hours_of(found.bought),
        valued_preemptions=found.valued,
        stranded_gpu_hours=gpu_hours_of(found.stranded),
    )
