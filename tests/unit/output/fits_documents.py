"""A document of `/api/v1/fits`, and one of `/api/v1/pending` with findings, for tests."""

from gputally.model.api.fits import FitsDocument, PoolFits
from gputally.model.api.pending import PendingDocument, PendingFinding, PendingReason
from tests.unit.output.why_documents import NOON, POD, before

H100, A100 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB"
NONE = {1: 0, 2: 0, 4: 0, 8: 0}
FITS = FitsDocument(
    at=NOON,
    cpu_cores=1,
    memory_bytes=2**30,
    is_complete=True,
    pools=[
        PoolFits(gpu_model=H100, pool="train", free=3, fits=NONE | {1: 3, 2: 1}, stranded={"fragment": 1}),
        PoolFits(gpu_model=A100, pool="old", free=2, fits=NONE, stranded={"not_ready": 2}),
        PoolFits(gpu_model=A100, pool="serve", free=2, fits=NONE | {1: 2, 2: 1}, stranded={}),
    ],
)


def finding(kind: str, meaning: str, name: str, *, gpus: int) -> PendingFinding:
    return PendingFinding(finding=kind, meaning=meaning, pods=1, gpus=gpus, oldest=before(143), names=[name])


FINDINGS = PendingDocument(
    at=NOON,
    currency="USD",
    reasons=[
        PendingReason(
            reason="capacity", meaning="m", pods=2, gpus=6, cost_per_hour="6", unpriced_gpus=0, oldest=before(143)
        )
    ],
    pods=[POD],
    pod_count=2,
    findings=[
        finding(
            "inversion",
            "pods that serve no users hold such GPUs, at the same or a higher priority",
            "ml-inference/llm-api-c8hml5cfhk-ssgqx",
            gpus=2,
        ),
        finding(
            "starvation",
            "pods of lower priority got such GPUs later, and cannot be preempted for them",
            "ml-vision/evaluate",
            gpus=4,
        ),
    ],
)
