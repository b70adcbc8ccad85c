"""Gangs: groups whose pods only work together, and how many pods each of them has.

A gang is told from its framework, its scheduler or its Job. Deployments, work queues and Ray clusters are none, since
their pods work without each other.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.frameworks.declared_groups import (
    COSCHEDULING_NAMES,
    COSCHEDULING_SIZE,
    MOST_PODS,
    NO_GANG,
    VOLCANO_NAMES,
    VOLCANO_SIZE,
    first_of,
)
from gputally.accounting.frameworks.pod_group import OnLoss, PodGroup, attempt_of, count_of, group_of
from gputally.model.kube.meta import Labels
from gputally.model.kube.pods import Texts
from gputally.model.kube.workloads import Job
from gputally.model.pod_record import PodRecord
from gputally.model.units import to_us

_FRAMEWORKS: Final = frozenset(
    {"LeaderWorkerSet", "JobSet", "TrainingJob", "VolcanoJob", "RayReplica", "KueuePodGroup"}
)
JOB: Final = "Job"
POD_GROUP: Final = "PodGroup"
LEADER_WORKER_SET: Final = "LeaderWorkerSet"
JOB_SET: Final = "JobSet"
_LWS_SIZE: Final = "leaderworkerset.sigs.k8s.io/size"
_KUEUE_SIZE: Final = "kueue.x-k8s.io/pod-group-total-count"
_KUEUE_SERVING: Final = "kueue.x-k8s.io/pod-group-serving"
"""Marks pods of Deployments and StatefulSets, which Kueue manages as groups."""
_REPLICATED_JOB: Final = "jobset.sigs.k8s.io/replicatedjob-name"
_REPLICAS: Final = "jobset.sigs.k8s.io/replicatedjob-replicas"
_INDEXED: Final = "Indexed"


def stated_gang(labels: Labels, annotations: Texts | None) -> tuple[str, int]:
    """The gang that the scheduler of such a pod binds at once, "" for none, and the stated size of any gang.

    The size is 0 if it is unknown.
    Volcano puts all pods into groups, most of them of one pod, so that there the size decides.

    Sources: lws api/leaderworkerset/v1 (SizeAnnotationKey); kueue pkg/controller/jobs/pod/constants; volcano
    pkg/controllers/podgroup; scheduler-plugins pkg/coscheduling.
    """
    if annotations and (size := _count(annotations, _LWS_SIZE)):
        return "", size
    if name := first_of(labels, COSCHEDULING_NAMES):
        return name, _count(labels, COSCHEDULING_SIZE)
    if annotations is None:
        return "", 0
    if (name := first_of(annotations, VOLCANO_NAMES)) and (size := _count(annotations, VOLCANO_SIZE)):
        return (name, size) if size > NO_GANG else ("", 0)
    if annotations.get(_KUEUE_SERVING) == "true":
        return "", NO_GANG
    return "", _count(annotations, _KUEUE_SIZE)


def gang_of(record: PodRecord, *, reads_objects: bool = False) -> PodGroup | None:
    """The gang that the pod is in; the Job of a pod if that decides; None for a pod that works alone.

    A gang that its controller recreates as a whole is another one afterwards. Of a Volcano group without a stated size,
    only its object says whether it is a gang.
    """
    group = group_of(record)
    if group and group.kind in _FRAMEWORKS:
        attempt = attempt_of(record)
        return replace(group, name=f"{group.name}/{attempt}") if attempt else group
    if record.gang:
        return PodGroup(POD_GROUP, record.namespace, record.gang, OnLoss.WAIT)
    if record.pod_group and reads_objects:
        return PodGroup(POD_GROUP, record.namespace, record.pod_group.partition("/")[2], OnLoss.WAIT)
    if group and group.kind == JOB:
        return group
    return (
        PodGroup(POD_GROUP, record.namespace, record.scheduling_group, OnLoss.WAIT) if record.scheduling_group else None
    )


class GangJob(Struct, frozen=True):
    """A Job with GPUs as a part of a gang that has so many `pods`; a gang of a JobSet has a `part` for each name."""

    group: PodGroup
    part: str
    pods: int
    created_us: int


def gang_job(job: Job) -> tuple[str, GangJob | None]:
    """The key of the gang that a Job is part of, and what it says about it; None if its pods work without each other.

    The Jobs of a JobSet are one gang. Others are gangs if they have one pod for each index, all at once; Kubernetes
    creates PodGroups for the same ones. Where each index may fail a number of times, it works for itself.

    Source: KEP-5547, Job integration with the Workload API; jobset pkg/constants and api/jobset/v1alpha2.
    """
    meta, spec = job.metadata, job.spec
    labels, pods = meta.labels or {}, min(1 if spec.parallelism is None else spec.parallelism, MOST_PODS)
    created_us = to_us(meta.creation_timestamp) if meta.creation_timestamp else 0
    if group := _job_set(meta.namespace, labels):
        replicas = _count(labels, _REPLICAS) or 1
        part = GangJob(group, labels.get(_REPLICATED_JOB, ""), min(pods * replicas, MOST_PODS), created_us)
        return key_of(group), part
    group = PodGroup(JOB, meta.namespace, f"{meta.name}/{meta.uid}", OnLoss.CONTINUE)
    is_gang = spec.completion_mode == _INDEXED and spec.completions == spec.parallelism and pods > NO_GANG
    works_alone = not is_gang or spec.backoff_limit_per_index is not None
    return key_of(group), None if works_alone else GangJob(group, "", pods, created_us)


def key_of(group: PodGroup) -> str:
    """Identifies a gang among all; no name contains a slash."""
    return f"{group.kind}/{group.namespace}/{group.name}"


def _job_set(namespace: str, labels: Mapping[str, str]) -> PodGroup | None:
    """The gang of the JobSet that labels a Job, which labels its pods alike."""
    kept = tuple(labels.items())
    alike = PodRecord(uid="", namespace=namespace, name="", units=(), created_us=0, labels=kept)
    group = gang_of(alike)
    return group if group and group.kind == JOB_SET else None


def is_leader(record: PodRecord) -> bool:
    """Whether a pod of a LeaderWorkerSet leads its group: only the names of workers have another number."""
    labels = dict(record.labels)
    return record.name == "-".join(
        labels.get(f"leaderworkerset.sigs.k8s.io/{key}", "") for key in ("name", "group-index")
    )


def _count(values: Texts, key: str) -> int:
    text = values.get(key)
    return min(count_of(text), MOST_PODS) if text else 0
