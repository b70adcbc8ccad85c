"""Everything that creates GPU pods, in one form: what each of its pods requests, and by which class."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.errors import MalformedObject
from gputally.frameworks import kubeflow
from gputally.model.kube.meta import Meta, OwnerReference
from gputally.model.kube.pods import ENDED_PHASES
from gputally.model.rules import Rules
from gputally.posture.objects import (
    KINDS,
    JobObject,
    JobTerms,
    PostureInput,
    PosturePod,
    PostureResource,
    ReplicatedObject,
    TrainingJobObject,
)
from gputally.shares.request import effective_units, holds_gpu
from gputally.shares.schemes import Units, describes

_ENDED: Final = frozenset({"Complete", "Failed"})
_OWNING: Final = (PostureResource.JOBS, PostureResource.STATEFUL_SETS, PostureResource.TRAINING_JOBS)
"""Pods of these owners are represented by the owner, if its resource could be read."""
_READ_OWNERS: Final[Mapping[tuple[str, str], PostureResource]] = {
    (each.group, each.kind): each.resource for each in KINDS if each.resource in _OWNING
}
"""Owners that are read, by API group and kind: a Job of Volcano is not one of Kubernetes."""
_NAMESAKES: Final = frozenset(kind for _, kind in _READ_OWNERS)


_OWNERS_OF_JOBS: Final = (("batch", "CronJob"), (kubeflow.GROUP, kubeflow.PYTORCH_JOB))
"""Owners that stand for their Jobs."""


class GpuTemplate(Struct, frozen=True, kw_only=True):
    """Pods that are alike: `replicas` of them run at once, each with the devices `units` by resource.

    `role` names them within the workload, "" if there is only one kind. `invalid` says why the request cannot be read.
    If it `is_admitted`, it is a pod of a cluster: what admission writes is in it.
    """

    pod: PosturePod
    units: Units
    replicas: int = 1
    role: str = ""
    invalid: str = ""
    is_admitted: bool = False

    @property
    def class_name(self) -> str:
        """The class that the template names; "" for none."""
        return self.pod.spec.priority_class_name

    @property
    def grace_s(self) -> int:
        """Seconds from SIGTERM to SIGKILL. Source: k8s.io/kubernetes pkg/apis/core/v1/defaults.go, 30 s."""
        grace_s = self.pod.spec.termination_grace_period_seconds
        return 30 if grace_s is None else grace_s


class GpuWorkload(Struct, frozen=True, kw_only=True):
    """An object that creates GPU pods, or a GPU pod itself. `job` is the spec of its Jobs, if it creates Jobs.

    If `needs_all`, its pods work only together.
    """

    kind: str
    namespace: str
    name: str
    labels: dict[str, str]
    templates: tuple[GpuTemplate, ...]
    job: JobTerms | None = None
    needs_all: bool = False


def namespace_of(metadata: Meta) -> str:
    """The namespace; manifests without one go to the one of the context, which is `default` in most."""
    return metadata.namespace or "default"


def gpu_workloads(found: PostureInput, rules: Rules) -> tuple[GpuWorkload, ...]:
    """All workloads with GPUs, by kind, namespace and name; ended ones are left out."""
    workloads = (*_controllers(found, rules), *_of_pods(found, rules))
    return tuple(sorted(workloads, key=lambda each: (each.kind, each.namespace, each.name)))


def gpu_pods(found: PostureInput, rules: Rules) -> tuple[PosturePod, ...] | None:
    """The GPU pods that have not ended; None if pods could not be read."""
    if found.pods is None:
        return None
    return tuple(each for each in found.pods if not _is_over(each) and holds_gpu(each, rules))


def _is_over(pod: PosturePod) -> bool:
    return pod.status.phase in ENDED_PHASES or pod.metadata.deletion_timestamp is not None


def _controllers(found: PostureInput, rules: Rules) -> Iterator[GpuWorkload]:
    for job in found.jobs or ():
        if not _has_ended(job) and _owner_type(job.metadata) not in _OWNERS_OF_JOBS:
            yield from _job_workload("Job", job.metadata, job.spec, rules)
    for cron in found.cronjobs or ():
        yield from _job_workload("CronJob", cron.metadata, cron.spec.job_template.spec, rules)
    for kind, objects in (("Deployment", found.deployments), ("StatefulSet", found.statefulsets)):
        for each in objects or ():
            yield from _replicated(kind, each, rules)
    for training in found.pytorchjobs or ():
        yield from _training(training, rules)


def _has_ended(job: JobObject) -> bool:
    return any(each.type in _ENDED and each.status == "True" for each in job.status.conditions or ())


def _job_workload(kind: str, metadata: Meta, spec: JobTerms, rules: Rules) -> Iterator[GpuWorkload]:
    replicas = 1 if spec.parallelism is None else spec.parallelism
    template = _template(spec.template, rules, replicas=replicas)
    yield from _workload(kind, metadata, [template], job=spec)


def _replicated(kind: str, found: ReplicatedObject, rules: Rules) -> Iterator[GpuWorkload]:
    replicas = 1 if found.spec.replicas is None else found.spec.replicas
    yield from _workload(kind, found.metadata, [_template(found.spec.template, rules, replicas=replicas)])


def _training(found: TrainingJobObject, rules: Rules) -> Iterator[GpuWorkload]:
    roles = (
        _template(each.template, rules, replicas=1 if each.replicas is None else each.replicas, role=role)
        for role, each in found.spec.replicas.items()
    )
    yield from _workload(kubeflow.PYTORCH_JOB, found.metadata, roles, needs_all=True)


def _template(pod: PosturePod, rules: Rules, *, replicas: int = 1, role: str = "") -> GpuTemplate | None:
    if not holds_gpu(pod, rules):
        return None
    found = GpuTemplate(pod=pod, units=(), replicas=replicas, role=role)
    try:
        units = tuple(pair for pair in effective_units(pod, rules) if not describes(pair[0], rules))
    except MalformedObject as error:
        return replace(found, invalid=str(error).partition(": ")[2])
    return replace(found, units=units) if units else None


def _workload(
    kind: str,
    metadata: Meta,
    templates: Iterable[GpuTemplate | None],
    *,
    job: JobTerms | None = None,
    needs_all: bool = False,
) -> Iterator[GpuWorkload]:
    """The workload, if any of its pods requests GPUs."""
    if with_gpus := tuple(each for each in templates if each):
        labels = dict(metadata.labels or {})
        for each in with_gpus:
            labels |= each.pod.metadata.labels or {}
        yield GpuWorkload(
            kind=kind,
            namespace=namespace_of(metadata),
            name=metadata.name,
            labels=labels,
            templates=with_gpus,
            job=job,
            needs_all=needs_all,
        )


def _of_pods(found: PostureInput, rules: Rules) -> Iterator[GpuWorkload]:
    """Pods without an owner, and the first pod of each owner that is not read: it stands for the others."""
    deployments = {(namespace_of(each.metadata), each.metadata.name) for each in found.deployments or ()}
    seen: set[tuple[str, str, str]] = set()
    for pod in gpu_pods(found, rules) or ():
        owner, place = _owner(pod.metadata), namespace_of(pod.metadata)
        kind, name = (_kind_of(owner), owner.name) if owner else ("Pod", pod.metadata.name)
        read = _READ_OWNERS.get(_owner_type(pod.metadata))
        is_read = read is not None and found.knows(read)
        if is_read or (place, _deployment_of(kind, name)) in deployments or (kind, place, name) in seen:
            continue
        seen.add((kind, place, name))
        template = _template(pod, rules)
        metadata = Meta(name=name, namespace=place, labels=pod.metadata.labels)
        yield from _workload(kind, metadata, [template and replace(template, is_admitted=not found.from_files)])


def owner_of(pod: PosturePod) -> tuple[str, str]:
    """Kind and name of what created a pod; the pod itself without an owner.

    A ReplicaSet stands for its Deployment: the label `pod-template-hash` says which part of its name is the hash.
    """
    owner = _owner(pod.metadata)
    if owner is None:
        return "Pod", pod.metadata.name
    template_hash = (pod.metadata.labels or {}).get("pod-template-hash")
    if owner.kind == "ReplicaSet" and template_hash and owner.name.endswith(f"-{template_hash}"):
        return "Deployment", owner.name.removesuffix(f"-{template_hash}")
    return owner.kind, owner.name


def _deployment_of(kind: str, name: str) -> str:
    """The name of the Deployment whose ReplicaSet has this name, which ends in a hash; "" for other kinds."""
    return name.rpartition("-")[0] if kind == "ReplicaSet" else ""


def _owner(metadata: Meta) -> OwnerReference | None:
    return next((each for each in metadata.owner_references or () if each.controller), None)


def _owner_type(metadata: Meta) -> tuple[str, str]:
    """The API group and the kind of the owner, both empty without one."""
    owner = _owner(metadata)
    return (owner.api_version.rpartition("/")[0], owner.kind) if owner else ("", "")


def _kind_of(owner: OwnerReference) -> str:
    """The kind of an owner, with the group if another kind that is read has the same name: `Job.batch.volcano.sh`."""
    group = owner.api_version.rpartition("/")[0]
    is_other = owner.kind in _NAMESAKES and (group, owner.kind) not in _READ_OWNERS
    return f"{owner.kind}.{group}" if is_other and group else owner.kind
