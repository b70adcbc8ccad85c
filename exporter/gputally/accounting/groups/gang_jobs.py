"""The Jobs whose pods are a gang, or a part of one, and how many pods each of them has."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gputally.frameworks.batch import JOB
from gputally.frameworks.framework import OnLoss
from gputally.frameworks.groups import PodGroup, gang_of, key_of
from gputally.frameworks.jobset import JOB_SET, part_of
from gputally.frameworks.stated import MOST_PODS, NO_GANG
from gputally.model.kube.workloads import Job
from gputally.model.pod_record import PodRecord
from gputally.model.units import to_us

_INDEXED: Final = "Indexed"


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

    Source: KEP-5547, Job integration with the Workload API.
    """
    meta, spec = job.metadata, job.spec
    labels, pods = meta.labels or {}, min(1 if spec.parallelism is None else spec.parallelism, MOST_PODS)
    created_us = to_us(meta.creation_timestamp) if meta.creation_timestamp else 0
    if group := _job_set(meta.namespace, labels):
        name, replicas = part_of(labels)
        return key_of(group), GangJob(group, name, min(pods * replicas, MOST_PODS), created_us)
    group = PodGroup(JOB, meta.namespace, f"{meta.name}/{meta.uid}", OnLoss.CONTINUE)
    is_gang = spec.completion_mode == _INDEXED and spec.completions == spec.parallelism and pods > NO_GANG
    works_alone = not is_gang or spec.backoff_limit_per_index is not None
    return key_of(group), None if works_alone else GangJob(group, "", pods, created_us)


def _job_set(namespace: str, labels: Mapping[str, str]) -> PodGroup | None:
    """The gang of the JobSet that labels a Job, which labels its pods alike."""
    kept = tuple(labels.items())
    alike = PodRecord(uid="", namespace=namespace, name="", units=(), created_us=0, labels=kept)
    group = gang_of(alike)
    return group if group and group.kind == JOB_SET else None
