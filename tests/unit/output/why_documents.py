"""Documents of `/api/v1/why` and `/api/v1/pending` for tests."""

from datetime import UTC, datetime, timedelta

from gputally.model.api.pending import PendingPod
from gputally.model.api.why import (
    Help,
    NeededResources,
    ObstacleText,
    OccupantPod,
    PastWait,
    PriorityNote,
    SimilarWaits,
    WhyAnswer,
    WhyDocument,
)

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


def before(minutes: float) -> datetime:
    """So many minutes before noon."""
    return NOON - timedelta(minutes=minutes)


POD = PendingPod(
    namespace="ml-research",
    pod="train-0",
    uid="uid-train-0",
    tier="batch",
    tenant="research",
    job_kind="Job",
    job="train",
    class_name="gpu-batch",
    priority=400,
    may_preempt=True,
    gpus=8,
    gpu_model="H100",
    created=before(26),
    reason="capacity",
    text="pods of the same or a higher priority hold what it needs",
    since=before(14),
    cost_per_hour="30",
)
NEEDS = NeededResources(
    devices={"nvidia.com/gpu": 8},
    cpu_cores=32,
    memory_bytes=256 << 30,
    ephemeral_storage_bytes=0,
    node_selector={"pool": "train"},
    tolerations=[],
    scheduler="default-scheduler",
)
SERVING = OccupantPod(
    tier="serving",
    gpus=4,
    tenant="product",
    namespace="api",
    pod="llm-7f9c",
    uid="uid-llm",
    node="gpu-3",
    state="running",
    priority=800,
    cost_per_hour="15",
    may_be_preempted=False,
    why_not="higher priority",
    serves_users=True,
)
SWEEP = OccupantPod(
    tier="interactive",
    gpus=4,
    tenant="lab",
    namespace="lab",
    pod="sweep-3",
    uid="uid-sweep",
    node="gpu-3",
    state="running",
    priority=200,
    cost_per_hour="15",
    may_be_preempted=True,
    lost_gpu_hours=2.5,
    lost_cost="9.375",
)
ANSWER = WhyAnswer(
    state="pending",
    pod=POD,
    needs=NEEDS,
    obstacles=[ObstacleText(kind="resource", text="gpu-3: 8 GPUs needed, 4 available", node="gpu-3")],
    nodes={"held by other pods": 9, "tainted": 2, "too small": 1},
    occupants=[SERVING, SWEEP],
    priorities=[
        PriorityNote(
            kind="starvation",
            text="pods of lower priority got 4 GPUs after it had begun to wait, such as lab/sweep-3",
            gpus=4,
        )
    ],
    waits=[
        PastWait(reason="quota", text="quota", start=before(26), end=before(14), seconds=720),
        PastWait(reason="capacity", text="capacity", start=before(14), end=None, seconds=840),
    ],
    waited_seconds=1560,
    waited_cost="13",
    similar=SimilarWaits(tier="batch", gpus=8, pods=37, median_seconds=240, p90_seconds=660, since=before(1440)),
    helps=[
        Help(text="add an empty node like gpu-3", by=["admin"], adds_node=True),
        Help(text="ask for PriorityClass gpu-training", by=["owner"], node="gpu-3", victims=[SERVING, SWEEP]),
        Help(text="request only 4 GPUs", by=["owner"], changes_job=True, node="gpu-3", victims=[SWEEP]),
    ],
    scheduler_message="0/12 nodes are available: 10 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint(s).",
)


def why(*answers: WhyAnswer, currency: str = "USD", bound: int = 0) -> WhyDocument:
    return WhyDocument(at=NOON, currency=currency, answers=list(answers), bound=bound)
