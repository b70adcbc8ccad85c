"""Workloads of Kueue as it writes them."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gputally.frameworks.kueue import KueueWorkload
from tests.core.manifests import Json, instant
from tests.core.refusals import pod_template

PYTORCH: Final[Json] = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "name": "train",
    "uid": "uid-train",
    "controller": True,
}


def condition(of_type: str, status: str, *, at: int, reason: str = "", message: str = "") -> Json:
    """A condition since `at` seconds."""
    times = {"lastTransitionTime": instant(at)}
    return {"type": of_type, "status": status, "reason": reason, "message": message} | times


def evicted(at: int, *, reason: str = "Preempted", status: str = "True", message: str = "") -> Json:
    """The condition of a Workload that its queue has stopped, or of one that is admitted again."""
    return condition("Evicted", status, at=at, reason=reason, message=message)


def preempted_for(uid: str, *, why: str = "prioritization in the ClusterQueue", job_uid: str = "UNKNOWN") -> str:
    """The message of Kueue 0.19.2 for a Workload that it preempted."""
    paths = "preemptor path: /gpus; preemptee path: /gpus"
    return f"Preempted to accommodate a workload (UID: {uid}, JobUID: {job_uid}) due to {why}; {paths}"


def unreserved(at: int, *, reason: str = "Pending", message: str = "") -> Json:
    """The condition of a Workload that has no quota."""
    return condition("QuotaReserved", "False", at=at, reason=reason, message=message)


def kueue_workload(
    *conditions: Json,
    owner: Json | None = PYTORCH,
    gpus: Mapping[str, int] | None = None,
    name: str = "wl",
    uid: str = "uid-wl",
    tier: str = "train",
    **spec: object,
) -> KueueWorkload:
    """A Workload with two pods in each pod set, whose pods request so many GPUs each."""
    sets = [
        {"name": each, "count": 2, "template": pod_template(number, tier)}
        for each, number in (gpus or {"worker": 4}).items()
    ]
    manifest = {
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": uid,
            "creationTimestamp": instant(5),
            "ownerReferences": [owner] if owner else [],
        },
        "spec": {"queueName": "research", "podSets": sets} | spec,
        "status": {"conditions": list(conditions)},
    }
    return msgspec.convert(manifest, KueueWorkload, strict=False)
