"""Workloads without pods as text."""

from msgspec.structs import replace

from gputally.model.api.pending import PendingDocument, PendingReason, PendingWorkload, QuotaRefusal
from gputally.model.api.why import WhyDocument
from tests.texts import pending_lines, why_lines
from tests.unit.output.why_documents import ANSWER, NOON, before

WORKLOAD = PendingWorkload(
    namespace="ml",
    kind="Job",
    name="train",
    uid="uid-train",
    tier="training",
    tenant="research",
    job_kind="Job",
    job="train",
    class_name="gpu-training",
    pods=2,
    is_at_least=False,
    gpus=16,
    gpus_per_pod=8,
    gpu_model="any",
    since=before(26),
    reason="quota_never",
    text="its quota training can never admit such a pod: 8 GPUs needed, 6 allowed",
    quota=QuotaRefusal(name="training", resource="requests.nvidia.com/gpu", requested=8, used=0, hard=6),
    message="exceeded quota: training, requested: requests.nvidia.com/gpu=8",
    cost_per_hour="60",
    helps="raise quota training by 2 GPUs (an admin of the cluster)",
    job_changes="request 6 GPUs at most (the owner of the pod)",
)
ALONE = replace(
    WORKLOAD, job="hvd", job_kind="MPIJob", class_name=None, pods=1, gpus=8, is_at_least=True, cost_per_hour=None
)

UNKNOWN = replace(ALONE, job="web", job_kind="RayCluster", gpus=None, gpus_per_pod=None, reason="refused")


def why(*workloads: PendingWorkload, answers: int = 0, width: int = 100) -> list[str]:
    document = WhyDocument(at=NOON, currency="USD", answers=[ANSWER] * answers, workloads=[*workloads])
    return list(why_lines(document, width=width))


def test_a_workload_says_what_it_lacks_and_why_with_the_evidence() -> None:
    assert why(WORKLOAD) == [
        "ml/job/train has lacked 2 pods of 8 GPUs each, 60.00 USD per hour, for 26 min: its quota training",
        "can never admit such a pod: 8 GPUs needed, 6 allowed.",
        "Class       gpu-training; tier training, tenant research",
        "Quota       training, requests.nvidia.com/gpu: 8 requested for each pod, 0 of 6 used",
        "API server  exceeded quota: training, requested: requests.nvidia.com/gpu=8",
        "Would help  - raise quota training by 2 GPUs (an admin of the cluster)",
        "Change job  - request 6 GPUs at most (the owner of the pod)",
    ]


def test_of_a_workload_known_by_an_event_alone_the_least_is_told() -> None:
    lines = why(ALONE)

    assert lines[0].startswith("ml/job/hvd (MPIJob) has lacked at least 1 pod of 8 GPUs, for 26 min:")
    assert "Class       tier training, tenant research" in lines


def test_where_nothing_says_how_many_gpus_it_says_so() -> None:
    [first, *_] = why(UNKNOWN)

    assert first.startswith(
        "ml/job/web (RayCluster) has lacked at least 1 pod of an unknown number of GPUs, for 26 min:"
    )


def test_an_answer_of_the_api_server_that_is_the_reason_is_told_once() -> None:
    refused = replace(WORKLOAD, quota=None, text="the API server refuses to create its pods: denied", message="denied")

    assert "\n".join(why(refused)).count("denied") == 1


def test_it_follows_the_answers_about_pods_after_an_empty_line() -> None:
    lines = why(WORKLOAD, ALONE, answers=1)

    starts = [index for index, line in enumerate(lines) if line.startswith("ml/job/")]
    assert len(starts) == 2
    assert all(lines[index - 1] == "" for index in starts)


def test_what_tenants_write_cannot_control_the_terminal() -> None:
    lines = why(replace(WORKLOAD, message="\x1b[2J", text="\x1b[31mred", name="x"))

    assert "\x1b" not in "".join(lines)


def listed(*workloads: PendingWorkload, count: int = 0, unmeasured: int = 0) -> list[str]:
    reason = PendingReason(
        reason="quota_never",
        meaning="they request more than their quota can ever admit",
        pods=3,
        gpus=24,
        cost_per_hour=None,
        unpriced_gpus=0,
        oldest=before(26),
    )
    document = PendingDocument(
        at=NOON,
        currency="USD",
        reasons=[],
        pods=[],
        pod_count=0,
        workloads=[*workloads],
        workload_reasons=[reason],
        workload_count=count or len(workloads),
        unmeasured_count=unmeasured,
    )
    return list(pending_lines(document, subject="in namespace ml", width=100))


def test_a_list_has_the_workloads_after_the_pods() -> None:
    assert listed(WORKLOAD, ALONE, count=5) == [
        "No pod in namespace ml waits for GPUs.",
        "",
        "5 workloads lack 3 pods with 24 GPUs, which do not exist: 3 because they request more than their",
        "quota can ever admit.",
        "",
        "GPUS  PODS  TIER       SINCE  REASON       WORKLOAD",
        "  16     2  training  26 min  quota_never  ml/job/train",
        "  8+    1+  training  26 min  quota_never  ml/job/hvd (MPIJob)",
        "and 3 more; narrow it down by NAMESPACE or --tenant",
    ]


def test_workloads_of_which_no_request_is_known_are_counted_apart() -> None:
    assert listed(WORKLOAD, UNKNOWN, count=3, unmeasured=2)[2:] == [
        "1 workload lacks 3 pods with 24 GPUs, which do not exist: 3 because they request more than their",
        "quota can ever admit.",
        "Pods of 2 more workloads are refused; nothing says how many GPUs they request, if any.",
        "",
        "GPUS  PODS  TIER       SINCE  REASON       WORKLOAD",
        "  16     2  training  26 min  quota_never  ml/job/train",
        "   ?    1+  training  26 min  refused      ml/job/web (RayCluster)",
        "and 1 more; narrow it down by NAMESPACE or --tenant",
    ]
    assert listed(UNKNOWN, unmeasured=1)[2] == (
        "Pods of 1 workload are refused; nothing says how many GPUs they request, if any."
    )
