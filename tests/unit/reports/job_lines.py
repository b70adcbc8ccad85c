"""A victim as the ledger has it, with any field changed."""

from typing import Any

from msgspec.structs import replace

from gputally.model.disruptions import Cause, Preemption, Preemptor, VictimRecord
from gputally.model.lost_work import CheckpointSource, LostWork
from gputally.model.units import COST_UNIT, GPU, GPU_HOUR, US_PER_SECOND
from gputally.reports.disruptions import DisruptionLine
from gputally.reports.job_preemptions import JobPreemption

MINUTE_US = 60 * US_PER_SECOND
AT = 1_800_000_000 * US_PER_SECOND
VICTIM = VictimRecord(
    victim_uid="a",
    victim_namespace="ml",
    victim_name="train-0",
    victim_tier="batch",
    victim_tenant="red",
    job_kind="Job",
    job="train",
    node="n1",
    node_uid="uid-n1",
    quantity=4 * GPU,
    cause=Cause.PREEMPTION,
    is_certain=True,
    decided_us=AT,
    requested_us=AT,
    grace_us=30 * US_PER_SECOND,
    stopped_us=AT + 5 * US_PER_SECOND,
    released_us=AT + 5 * US_PER_SECOND,
    reused_us=None,
    replaced_us=AT + 60 * US_PER_SECOND,
    replacement_uid="again",
    job_preemption="a",
    exit_code=143,
)
PREEMPTOR = Preemptor(
    uid="by", namespace="prod", name="chat-0", priority=10_000, class_name="inference-critical", may_preempt=True
)
BY = Preemption(preemptor=PREEMPTOR, preemptor_tier="serving", victim_priority=100, victim_class="training-low")
BY_QUEUE = replace(
    BY,
    preemptor=replace(PREEMPTOR, name="chat", kind="Job", priority=200),
    victim_priority=150,
    queue_rule="InClusterQueue",
)
LOST = LostWork(
    victim_uid="a",
    gpu_time=5 * GPU_HOUR,
    costs=(("EUR", 11 * COST_UNIT),),
    basis=CheckpointSource.START,
    checkpoint_us=AT - 75 * MINUTE_US,
    members=1,
    pods=(),
    stalled_gpu_time=0,
    at_intervals=((10 * MINUTE_US, GPU_HOUR // 4), (30 * MINUTE_US, 2 * GPU_HOUR), (60 * MINUTE_US, 3 * GPU_HOUR)),
    is_final=True,
)


def line(
    *,
    by: Preemption | None = BY,
    lost: LostWork | None = LOST,
    **victim: Any,  # noqa: ANN401 - any field
) -> DisruptionLine:
    return DisruptionLine(replace(VICTIM, by=by, **victim), lost)


def of_preemptor(by: Preemption, **preemptor: Any) -> Preemption:  # noqa: ANN401 - any field
    """The preemption by a preemptor with other values."""
    assert by.preemptor
    return replace(by, preemptor=replace(by.preemptor, **preemptor))


def job(*lines: DisruptionLine) -> JobPreemption:
    return JobPreemption(lines or (line(),))
