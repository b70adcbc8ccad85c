"""Pods that lost their GPUs involuntarily, as rows to show."""

from datetime import datetime, tzinfo
from decimal import Decimal

from msgspec import Struct, structs

from gputally.ledger.records import PreemptionRecord
from gputally.model.units import US_PER_SECOND, to_datetime
from gputally.report.disruption_lines import DisruptionLine
from gputally.report.rounding import gpus


class PreemptionRow(Struct, frozen=True, kw_only=True):
    """One disrupted pod; times are ISO 8601, and None if not reached or not known.

    `id` identifies the disruption: it is the UID of the victim, which is disrupted once. `grace_exceeded_seconds` is
    how much longer than its grace period the victim had its GPUs. The preemptor is None for other causes; an inferred
    one was named by no Event, but was the only pod nominated to the node at that time.
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
    preemptor_tier: str | None = None
    preemptor_namespace: str | None = None
    preemptor: str | None = None
    preemptor_uid: str | None = None
    is_preemptor_inferred: bool | None = None


def preemption_row(line: DisruptionLine, zone: tzinfo, *, tiers_only: bool) -> PreemptionRow:
    """The row in this time zone; with `tiers_only` without names of preemptors."""
    return _with_preemptor(_row(line, zone), line.preemption, tiers_only=tiers_only)


def _row(line: DisruptionLine, zone: tzinfo) -> PreemptionRow:
    each = line.disruption

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
    )


def _with_preemptor(row: PreemptionRow, found: PreemptionRecord | None, *, tiers_only: bool) -> PreemptionRow:
    if found is None:
        return row
    row = structs.replace(row, preemptor_tier=found.preemptor_tier, is_preemptor_inferred=found.is_inferred)
    if tiers_only:
        return row
    return structs.replace(
        row,
        preemptor_namespace=found.preemptor_namespace,
        preemptor=found.preemptor_name,
        preemptor_uid=found.preemptor_uid,
    )


def _seconds(from_us: int | None, to_us: int | None) -> Decimal | None:
    if from_us is None or to_us is None:
        return None
    return Decimal(f"{(Decimal(max(0, to_us - from_us)) / US_PER_SECOND).normalize():f}")
