"""The pods that a manifest would create."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import field

from gputally.model.kube import Meta, PodMeta
from gputally.model.objects.camel import Camel
from gputally.model.objects.core_values import NEVER
from gputally.model.objects.placeable_pod import PlaceablePod, PlaceableSpec
from gputally.model.placement.advice import PriorityChoice
from gputally.report_api.report_request import InvalidRequest

MOST_PODS: Final = 1_000
"""Of one kind in one request."""
MOST_KINDS: Final = 20
"""Different pods in one request."""

_MOST_NAME: Final = 253
"""Characters of a name in Kubernetes."""


class PlannedPods(NamedTuple):
    """`number` equal pods that do not exist yet. `name` says of what, such as `Job ml/train` or `... Worker`."""

    name: str
    pod: PlaceablePod
    number: int = 1


class PlannedTemplate(Camel, frozen=True):
    """A pod template."""

    metadata: PodMeta = field(default_factory=PodMeta)
    spec: PlaceableSpec = field(default_factory=PlaceableSpec)


class _Owner(Camel, frozen=True):
    kind: str
    metadata: Meta = field(default_factory=Meta)


class _PriorityClass(Camel, frozen=True):
    metadata: Meta
    value: int
    preemption_policy: str = ""


class _Copies(Camel, frozen=True):
    """`parallelism` of Jobs, `replicas` of others; without a number, one."""

    template: PlannedTemplate = field(default_factory=PlannedTemplate)
    replicas: int | None = None
    parallelism: int | None = None


class _Copied(Camel, frozen=True):
    spec: _Copies = field(default_factory=_Copies)


class _CronSpec(Camel, frozen=True):
    job_template: _Copied = field(default_factory=_Copied)


class _Cron(Camel, frozen=True):
    spec: _CronSpec = field(default_factory=_CronSpec)


class _ReplicatedJob(Camel, frozen=True):
    name: str = ""
    replicas: int | None = None
    template: _Copied = field(default_factory=_Copied)


class _JobSetSpec(Camel, frozen=True):
    replicated_jobs: tuple[_ReplicatedJob, ...] = ()


class _JobSet(Camel, frozen=True):
    spec: _JobSetSpec = field(default_factory=_JobSetSpec)


class _TrainingSpec(Camel, frozen=True):
    """kubeflow.org/v1: the roles of each kind of job have a field of their own."""

    pytorch: dict[str, _Copies] = field(default_factory=dict, name="pytorchReplicaSpecs")
    tensorflow: dict[str, _Copies] = field(default_factory=dict, name="tfReplicaSpecs")
    mpi: dict[str, _Copies] = field(default_factory=dict, name="mpiReplicaSpecs")
    xgboost: dict[str, _Copies] = field(default_factory=dict, name="xgbReplicaSpecs")


class _Training(Camel, frozen=True):
    spec: _TrainingSpec = field(default_factory=_TrainingSpec)


class _Listed(Camel, frozen=True):
    items: tuple[msgspec.Raw, ...] = ()


Roles = Iterator[tuple[str, PlannedTemplate, int]]


def _number(given: int | None) -> int:
    return 1 if given is None else given


def _pod(body: bytes) -> Roles:
    found = msgspec.json.decode(body, type=PlannedTemplate)
    yield "", found, 1


def _copied(body: bytes) -> Roles:
    spec = msgspec.json.decode(body, type=_Copied).spec
    yield "", spec.template, _number(spec.replicas if spec.parallelism is None else spec.parallelism)


def _cron(body: bytes) -> Roles:
    spec = msgspec.json.decode(body, type=_Cron).spec.job_template.spec
    yield "", spec.template, _number(spec.parallelism)


def _job_set(body: bytes) -> Roles:
    for each in msgspec.json.decode(body, type=_JobSet).spec.replicated_jobs:
        job = each.template.spec
        yield each.name, job.template, _number(each.replicas) * _number(job.parallelism)


def _training(body: bytes) -> Roles:
    spec = msgspec.json.decode(body, type=_Training).spec
    for roles in (spec.pytorch, spec.tensorflow, spec.mpi, spec.xgboost):
        for role, each in roles.items():
            yield role, each.template, _number(each.replicas)


READERS: Final[Mapping[str, Callable[[bytes], Roles]]] = {
    "Pod": _pod,
    "Job": _copied,
    "CronJob": _cron,
    "Deployment": _copied,
    "StatefulSet": _copied,
    "ReplicaSet": _copied,
    "JobSet": _job_set,
    "PyTorchJob": _training,
    "TFJob": _training,
    "MPIJob": _training,
    "XGBoostJob": _training,
}
"""The kinds whose pods are known."""
PRIORITY_CLASS: Final = "PriorityClass"


def planned_pods(body: bytes) -> list[PlannedPods]:
    """The pods of a manifest as JSON, or of a list of manifests; other kinds in a list are ignored.

    Raises: InvalidRequest.
    """
    try:
        found = list(_planned(body))
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"the manifest is not valid: {error}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise InvalidRequest("the body is not the JSON of a manifest") from None
    if not found:
        raise InvalidRequest(f"the manifest creates no pods; use one of {', '.join(READERS)}")
    if len(found) > MOST_KINDS:
        raise InvalidRequest(f"the manifest has {len(found)} pod templates; use {MOST_KINDS} at most")
    return found


def _planned(body: bytes) -> Iterator[PlannedPods]:
    owner = msgspec.json.decode(body, type=_Owner)
    if owner.kind.endswith("List"):
        for item in msgspec.json.decode(body, type=_Listed).items:
            inner = msgspec.json.decode(item, type=_Owner)
            if inner.kind in READERS:
                yield from _of_owner(inner, bytes(item))
    elif owner.kind in READERS:
        yield from _of_owner(owner, body)


def _of_owner(owner: _Owner, body: bytes) -> Iterator[PlannedPods]:
    namespace = owner.metadata.namespace or "default"
    subject = f"{owner.kind} {namespace[:_MOST_NAME]}/{owner.metadata.name[:_MOST_NAME] or 'unnamed'}"
    try:
        roles = list(READERS[owner.kind](body))
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{subject}: {error}") from None
    for role, template, count in roles:
        name = f"{subject} {role[:_MOST_NAME]}" if role else subject
        if not 0 <= count <= MOST_PODS:
            raise InvalidRequest(f"{name} has {count} pods; use {MOST_PODS:,} at most")
        if count:
            yield PlannedPods(name, _as_pod(template, namespace), count)


def planned_classes(body: bytes) -> list[PriorityChoice]:
    """The PriorityClasses that a list of manifests creates besides. Raises: InvalidRequest."""
    try:
        owner = msgspec.json.decode(body, type=_Owner)
        items = msgspec.json.decode(body, type=_Listed).items if owner.kind.endswith("List") else ()
        return [_class(item) for item in items if msgspec.json.decode(item, type=_Owner).kind == PRIORITY_CLASS]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"the manifest is not valid: {error}") from None


def _class(item: msgspec.Raw) -> PriorityChoice:
    try:
        found = msgspec.json.decode(item, type=_PriorityClass)
    except msgspec.ValidationError as error:
        name = msgspec.json.decode(item, type=_Owner).metadata.name[:_MOST_NAME]
        raise InvalidRequest(f"{PRIORITY_CLASS} {name}: {error}") from None
    return PriorityChoice(found.metadata.name, found.value, found.preemption_policy != NEVER)


def _as_pod(template: PlannedTemplate, namespace: str) -> PlaceablePod:
    return PlaceablePod(metadata=msgspec.structs.replace(template.metadata, namespace=namespace), spec=template.spec)


def plain_pod(document: Mapping[str, Any]) -> PlaceablePod:
    """A pod from plain values. Raises: InvalidRequest."""
    try:
        return msgspec.convert(document, PlaceablePod)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"not a valid pod: {error}") from None
