"""Small records of each kind that a ledger stores, with times in seconds since the epoch."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from gputally.accounting.changes import Changes
from gputally.accounting.facts.outcome import outcome_of
from gputally.accounting.totals.total import Total
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import AllocatedTime, SegmentRecord, Window
from gputally.model.allocation import End, Gap, Result, Segment, State, Terms
from gputally.model.disruptions import Cause, CountedPreemption, Preemption, Preemptor, Victim
from gputally.model.kube.meta import OwnerReference
from gputally.model.kube.policy import ClassVersion
from gputally.model.lost_work import CheckpointSource, LostPod, LostWork
from gputally.model.node_record import NodeFacts, NodeRecord
from gputally.model.pod_record import PodRecord
from gputally.model.price import Asset, Basis, Price, Purchase
from gputally.model.units import GPU, PICO, US_PER_SECOND
from gputally.model.verdicts import Reason
from gputally.model.waits import Occupant, PendingSegment, WaitCause

OPENED_S = 1000
ACCOUNTED_S = 5000
ALWAYS = Window(0, 10**15)
BALANCED = {Total.ALLOCATED: (0, 0)}
PRICE = Price(
    key="0123456789ab/h100@0:spot",
    currency="CHF",
    per_gpu_hour=Decimal("1.2345678901"),
    rate=int(Decimal("1.2345678901") * PICO),
    basis=Basis.GPU,
    purchase=Purchase.SPOT,
)
ASSET = Asset(instance_type="p5", gpu_model="H100", pool="a", purchase=Purchase.SPOT, labels=(("zone", "z1"),))
TERMS = Terms(
    from_us=2,
    tier="low",
    tenant="red",
    gpu_model="H100",
    pool="a",
    asset=ASSET,
    quantities=(("nvidia.com/gpu", GPU),),
)
FACTS = NodeFacts(
    physical=8 * GPU,
    covered=8 * GPU,
    allocatable=7 * GPU,
    ready=True,
    cordoned=False,
    gpu_model="H100",
    pool="a",
    asset=ASSET,
    labels=(("nvidia.com/gpu.memory", "81920"), ("nvidia.com/gpu.replicas", "2")),
)
NODE = NodeRecord(uid="node-1", name="n1", created_us=5, facts=((5, FACTS),))
DISRUPTION = Victim(
    victim_uid="a",
    victim_namespace="ml",
    victim_name="pod-a",
    victim_tier="low",
    victim_tenant="red",
    job_kind="Job",
    job="train",
    node="n1",
    node_uid="uid-n1",
    quantity=GPU,
    reported=Cause.EVICTION,
    cause=Cause.EVICTION,
    decided_us=7,
    requested_us=8,
    grace_us=30_000_000,
    stopped_us=9,
    released_us=9,
    noticed_us=10,
    counted=("low", "red", "eviction"),
    budget_violated=False,
)
CLASS_VERSION = ClassVersion(
    name="low",
    uid="uid-low",
    value=-100,
    preemption_policy="Never",
    is_default=True,
    from_us=7,
)
LOST_WORK = LostWork(
    victim_uid="a",
    gpu_time=3 * 10**20,
    costs=(("EUR", 7 * 10**30),),
    basis=CheckpointSource.START,
    checkpoint_us=5,
    members=8,
    pods=(LostPod("a", 5, 9, CheckpointSource.START), LostPod("b", 6, 9, CheckpointSource.ANNOTATION)),
    stalled_gpu_time=10**19,
    at_intervals=((600_000_000, 1), (1_800_000_000, 2), (3_600_000_000, 3)),
    is_final=True,
)
WAIT = PendingSegment(
    reason=Reason.CAPACITY,
    cause=WaitCause.IDLE_ALLOCATION,
    tier="low",
    tenant="red",
    quantity=GPU,
    from_us=7,
    occupant=Occupant("high", "blue"),
    shown=("low", "high"),
    price=PRICE,
)
BY = CountedPreemption(
    preemptor=Preemptor(uid="b", namespace="ml", name="pod-b", tier="high", tenant="blue"),
    preemptor_tier="high",
    noticed_us=9,
    counted_tier="low",
)
BY_QUEUE = replace(
    BY,
    preemptor=Preemptor(
        uid="wl", namespace="serve", name="llm", tier="high", tenant="blue", kind="RayJob", quantity=3 * GPU
    ),
    queue_rule="InCohortReclamation",
    preemptor_pods=("b", "c"),
)
"""For a workload for which a queue made room."""


def recorded(by: CountedPreemption) -> Preemption:
    """What the ledger has of a preemption."""
    return Preemption(**{name: getattr(by, name) for name in Preemption.__struct_fields__})


PREEMPTION = Victim(
    victim_uid="a",
    victim_namespace="ml",
    victim_name="pod-a",
    victim_tier="low",
    victim_tenant="red",
    job_kind="Job",
    job="train",
    node="n1",
    node_uid="uid-n1",
    quantity=GPU,
    is_disruption=False,
    reported=Cause.PREEMPTION,
    cause=Cause.PREEMPTION,
    decided_us=7,
    requested_us=8,
    noticed_us=9,
    by=BY,
)
"""Of a pod that a scheduler preempted before it had its GPUs, so that it is no disruption."""
PREEMPTED = replace(
    DISRUPTION, reported=Cause.PREEMPTION, cause=Cause.PREEMPTION, counted=("low", "red", "preemption"), by=BY
)
QUEUED = replace(PREEMPTION, by=BY_QUEUE)
"""Of a pod whose queue made room for a workload."""


def us(seconds: int) -> int:
    return seconds * US_PER_SECOND


def segment(start: int, end: int | None, **more: Any) -> Segment:  # noqa: ANN401 - any field of a segment
    """One H100 running from `start` to `end`."""
    fields: dict[str, Any] = {
        "resource": "nvidia.com/gpu",
        "state": State.RUNNING,
        "quantity": GPU,
        "tier": "a tier of its own",
        "tenant": "red",
        "queue": "q",
        "gpu_model": "NVIDIA-H100-80GB-HBM3",
        "pool": "a",
        "price": PRICE,
        "labels": ("other", "red", "H100", "running"),
    }
    return Segment(start_us=us(start), end_us=None if end is None else us(end), **fields | more)


def pod(uid: str, *segments: Segment, revision: int = 1, **more: Any) -> PodRecord:  # noqa: ANN401 - any field of a pod
    """A pod with these segments and every field set."""
    fields: dict[str, Any] = {
        "namespace": "ml",
        "name": f"pod-{uid}",
        "units": (("nvidia.com/gpu", 1),),
        "class_name": "low",
        "priority": -5,
        "labels": (("team", "red"),),
        "owner": OwnerReference(kind="Job", name="train", uid="job-1", api_version="batch/v1", controller=True),
        "created_us": 1,
        "node": "n1",
        "node_uid": "node-1",
        "scheduled_us": 2,
        "started_us": 3,
        "deletion_us": 4,
        "preempted_us": 4,
        "end_us": 6,
        "end_by": End.VANISHED,
        "gap": Gap(from_us=6, to_us=9),
        "job_kind": "Job",
        "job": "train",
        "result": Result("Failed", "Error", 137),
        "terms": (TERMS,),
    }
    return PodRecord(uid=uid, segments=segments, revision=revision, **fields | more)


def step(*revised: PodRecord, at: int = ACCOUNTED_S, **more: Any) -> Changes:  # noqa: ANN401 - any field of the changes
    """One set of changes; `live` is the allocated time of the counters, by default the sum of the revised pods."""
    fields: dict[str, Any] = {"live": line(*revised), "revisions": {record.uid: record for record in revised}} | more
    if isinstance(fields["live"], tuple | None):
        fields["live"] = {Total.ALLOCATED: fields["live"]} if fields["live"] else {}
    return Changes(accounting_start_us=us(OPENED_S), evaluated_us=us(at), at_us=us(at), **fields)


def line(*records: PodRecord) -> tuple[int, int]:
    """GPU-time since the accounting start as a + b·t, computed from its definition."""
    a = b = 0
    for each in (each for record in records for each in record.segments):
        start_us = max(each.start_us, us(OPENED_S))
        if each.end_us is None:
            a, b = a - start_us * each.quantity, b + each.quantity
        elif each.end_us > start_us:
            a += (each.end_us - start_us) * each.quantity
    return a, b


def segments_of(record: PodRecord) -> list[SegmentRecord]:
    """The segments that a reader returns for this revision; open segments end at the accounted time."""
    return [
        SegmentRecord(
            pod_uid=record.uid,
            namespace=record.namespace,
            name=record.name,
            node=record.node,
            node_uid=record.node_uid,
            job_kind=record.job_kind,
            job=record.job,
            outcome=outcome_of(record),
            job_outcome=outcome_of(record),
            revision=record.revision,
            segment=replace(each, end_us=us(ACCOUNTED_S) if each.end_us is None else each.end_us),
        )
        for each in record.segments
    ]


def all_segments(reader: LedgerReader) -> list[SegmentRecord]:
    """All segments in the ledger."""
    return list(reader.segments(ALWAYS))


def in_order(sums: Iterable[AllocatedTime]) -> list[AllocatedTime]:
    """By labels, price and period."""
    return sorted(sums, key=lambda each: (each.labels, each.price.key if each.price else "", each.period))
