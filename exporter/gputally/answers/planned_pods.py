"""Pods that do not exist yet: those that a manifest, or the parameters of a request, would create.

Kinds are matched with their API group: a Volcano Job is not a Kubernetes Job.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import field

from gputally.accounting.facts.gpu_model import LABELS
from gputally.answers.parameters import InvalidRequest
from gputally.formatting.amounts import GPU_RESOURCE
from gputally.frameworks.all import MANIFESTS
from gputally.frameworks.manifest import Copied, PlannedTemplate, PodKind, ReadRoles, Roles, number_of
from gputally.model.advice import PriorityChoice
from gputally.model.kube.meta import Camel, Meta
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import NEVER
from gputally.model.rules import Rules
from gputally.placement.room import Room
from gputally.placement.unknown_workload import UnknownWorkload, group_of
from gputally.questions.parameter import InvalidQuestion
from gputally.questions.what_if import MOST_PODS, WhatIfPods

MOST_KINDS: Final = 20
"""Different pods in one request."""

_MOST_NAME: Final = 253
"""Characters of a name in Kubernetes."""
PRIORITY_CLASS: Final = "PriorityClass"


class PlannedPods(NamedTuple):
    """`number` equal pods that do not exist yet. `name` says of what, such as `Job ml/train` or `... Worker`."""

    name: str
    pod: PlaceablePod
    number: int = 1


class _Owner(Camel, frozen=True):
    kind: str
    api_version: str = ""
    metadata: Meta = field(default_factory=Meta)

    @property
    def pod_kind(self) -> PodKind | None:
        """The kind in `READERS`; None for others."""
        return pod_kind_of(self.api_version, self.kind)


class _PriorityClass(Camel, frozen=True):
    metadata: Meta
    value: int
    preemption_policy: str = ""


class _CronSpec(Camel, frozen=True):
    job_template: Copied = field(default_factory=Copied)


class _Cron(Camel, frozen=True):
    spec: _CronSpec = field(default_factory=_CronSpec)


class _Listed(Camel, frozen=True):
    items: tuple[msgspec.Raw, ...] = ()


def _pod(body: bytes) -> Roles:
    found = msgspec.json.decode(body, type=PlannedTemplate)
    yield "", found, 1


def _copied(body: bytes) -> Roles:
    spec = msgspec.json.decode(body, type=Copied).spec
    yield "", spec.template, number_of(spec.replicas if spec.parallelism is None else spec.parallelism)


def _cron(body: bytes) -> Roles:
    spec = msgspec.json.decode(body, type=_Cron).spec.job_template.spec
    yield "", spec.template, number_of(spec.parallelism)


READERS: Final[Mapping[PodKind, ReadRoles]] = {
    PodKind("", "Pod"): _pod,
    PodKind("batch", "Job"): _copied,
    PodKind("batch", "CronJob"): _cron,
    PodKind("apps", "Deployment"): _copied,
    PodKind("apps", "StatefulSet"): _copied,
    PodKind("apps", "ReplicaSet"): _copied,
    **MANIFESTS,
}
"""The kinds whose pods are known."""
KIND_NAMES: Final = ", ".join(each.name for each in READERS)


def is_class(api_version: str, kind: str) -> bool:
    """Whether that is the PriorityClass of Kubernetes."""
    return kind == PRIORITY_CLASS and group_of(api_version) in ("", "scheduling.k8s.io")


def pod_kind_of(api_version: str, kind: str) -> PodKind | None:
    """The kind in `READERS`; None for others. Without an API version, it is the first one of that name."""
    found = (each for each in READERS if each.kind == kind)
    return next((each for each in found if not api_version or each.group == group_of(api_version)), None)


def planned_pods(body: bytes) -> list[PlannedPods]:
    """The pods of a manifest as JSON, or of a list of manifests; `not_modelled` names the other kinds of a list.

    Raises: InvalidRequest.
    """
    try:
        found = list(_planned(body))
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"the manifest is not valid: {error}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise InvalidRequest("the body is not the JSON of a manifest") from None
    if not found:
        others = [each.name for each in unknown_workloads(body)]
        named = f"the pods of {', '.join(others)} are not modelled" if others else "the manifest creates no pods"
        raise InvalidRequest(f"{named}; use one of {KIND_NAMES}")
    if len(found) > MOST_KINDS:
        raise InvalidRequest(f"the manifest has {len(found)} pod templates; use {MOST_KINDS} at most")
    return found


def _planned(body: bytes) -> Iterator[PlannedPods]:
    owner = msgspec.json.decode(body, type=_Owner)
    if owner.kind.endswith("List"):
        for item in msgspec.json.decode(body, type=_Listed).items:
            inner = msgspec.json.decode(item, type=_Owner)
            if kind := inner.pod_kind:
                yield from _of_owner(kind, inner, bytes(item))
    elif kind := owner.pod_kind:
        yield from _of_owner(kind, owner, body)


def _of_owner(kind: PodKind, owner: _Owner, body: bytes) -> Iterator[PlannedPods]:
    namespace = owner.metadata.namespace or "default"
    subject = f"{kind.name} {namespace[:_MOST_NAME]}/{owner.metadata.name[:_MOST_NAME] or 'unnamed'}"
    try:
        roles = list(READERS[kind](body))
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{subject}: {error}") from None
    for role, template, count in roles:
        name = f"{subject} {role[:_MOST_NAME]}" if role else subject
        if not 0 <= count <= MOST_PODS:
            raise InvalidRequest(f"{name} has {count} pods; use {MOST_PODS:,} at most")
        if count:
            yield PlannedPods(name, _as_pod(template, namespace), count)


def not_modelled(body: bytes, rules: Rules) -> list[str]:
    """The objects of a list whose pods request GPUs, or may do so, but are not known: `DaemonSet ml/agent`."""
    return [each.name for each in unknown_workloads(body) if each.may_have_gpus(rules)]


def unknown_workloads(body: bytes) -> list[UnknownWorkload]:
    """The objects of a manifest, or of a list, that create pods but are of no known kind. Raises: InvalidRequest."""
    try:
        value = msgspec.json.decode(body)
        items = value.get("items", []) if value["kind"].endswith("List") else [value]
        return [found for each in items if (found := unknown_workload(each))]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"the manifest is not valid: {error}") from None


def unknown_workload(value: dict[str, Any]) -> UnknownWorkload | None:
    """The object, if it creates pods and is of no known kind."""
    if pod_kind_of(value.get("apiVersion", ""), value["kind"]):
        return None
    found = UnknownWorkload(value)
    return found if found.has_pods else None


def planned_classes(body: bytes) -> list[PriorityChoice]:
    """The PriorityClasses that a list of manifests creates besides. Raises: InvalidRequest."""
    try:
        owner = msgspec.json.decode(body, type=_Owner)
        items = msgspec.json.decode(body, type=_Listed).items if owner.kind.endswith("List") else ()
        inner = ((item, msgspec.json.decode(item, type=_Owner)) for item in items)
        return [_class(item) for item, each in inner if is_class(each.api_version, each.kind)]
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


def planned_by_question(asked: WhatIfPods, room: Room) -> PlannedPods:
    """The pods that the question describes. Raises: InvalidQuestion for a GPU model that no node has."""
    requests: dict[str, str] = {GPU_RESOURCE: str(asked.gpus)}
    requests |= {name: text for name, text in (("cpu", asked.cpu), ("memory", asked.memory)) if text}
    spec: dict[str, Any] = {"containers": [{"resources": {"requests": requests}}]}
    if asked.class_name:
        spec["priorityClassName"] = asked.class_name
    if asked.model:
        spec["affinity"] = _affinity(asked.model, room)
    return PlannedPods("", plain_pod({"metadata": {"namespace": asked.namespace}, "spec": spec}), asked.count)


def _affinity(model: str, room: Room) -> dict[str, Any]:
    """Requires nodes whose label for the GPU model contains `model`, whatever its case."""
    by_key: dict[str, set[str]] = {}
    for node in room:
        assert node.place
        labels = dict(node.place.labels)
        if key := next((each for each in LABELS if labels.get(each)), None):
            by_key.setdefault(key, set()).add(labels[key])
    known = {value for values in by_key.values() for value in values}
    terms = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": matching}]}
        for key, values in by_key.items()
        if (matching := sorted(each for each in values if model.lower() in each.lower()))
    ]
    if not terms:
        raise no_such_model(model, known)
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def no_such_model(model: str, known: Collection[str]) -> InvalidQuestion:
    """No node has such a GPU model; these are `known`."""
    known_models = ", ".join(sorted(known)) or "none"
    return InvalidQuestion("model", f"no node has a GPU model like '{model[:60]}'; there are {known_models}")
