"""JobSet: Jobs that are recreated together, which are one gang.

Sources: jobset pkg/constants and api/jobset/v1alpha2.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import field

from gputally.frameworks.framework import Framework, GroupLabels, JobLabel, OnLoss
from gputally.frameworks.manifest import Copied, PodKind, Roles, number_of
from gputally.frameworks.stated import pods_in
from gputally.model.kube.meta import Camel

JOB_SET: Final = "JobSet"
_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
_UID: Final = "jobset.sigs.k8s.io/jobset-uid"
_RESTART_ATTEMPT: Final = "jobset.sigs.k8s.io/restart-attempt"
"""How often a JobSet has recreated all its Jobs."""
_REPLICATED_JOB: Final = "jobset.sigs.k8s.io/replicatedjob-name"
_REPLICAS: Final = "jobset.sigs.k8s.io/replicatedjob-replicas"


def part_of(labels: Mapping[str, str]) -> tuple[str, int]:
    """The name that a Job shares with its replicas in the JobSet, by its labels, and how many of them there are."""
    return labels.get(_REPLICATED_JOB, ""), pods_in(labels, _REPLICAS) or 1


class _ReplicatedJob(Camel, frozen=True):
    name: str = ""
    replicas: int | None = None
    template: Copied = field(default_factory=Copied)


class _JobSetSpec(Camel, frozen=True):
    replicated_jobs: tuple[_ReplicatedJob, ...] = ()


class _JobSet(Camel, frozen=True):
    spec: _JobSetSpec = field(default_factory=_JobSetSpec)


def _roles(body: bytes) -> Roles:
    for each in msgspec.json.decode(body, type=_JobSet).spec.replicated_jobs:
        job = each.template.spec
        yield each.name, job.template, number_of(each.replicas) * number_of(job.parallelism)


JOB_SETS: Final = Framework(
    jobs=(JobLabel(JOB_SET, _NAME),),
    groups=(GroupLabels(JOB_SET, OnLoss.RESTART, (_NAME,), (_UID,)),),
    attempts=_RESTART_ATTEMPT,
    manifests={PodKind("jobset.x-k8s.io", JOB_SET): _roles},
)
