"""Pods that do not exist yet: those that a manifest, or the parameters of a request, would create.

Kinds are matched with their API group: a Volcano Job is not a Kubernetes Job.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import field

from gputally.accounting.facts.gpu_model import LABELS
from gputally.answers.parameters import WHAT_IF_PARAMETERS, InvalidRequest, expect_known, number, only
from gputally.formatting.amounts import GPU_RESOURCE
from gputally.frameworks.all import MANIFESTS
from gputally.frameworks.manifest import Copied, PlannedTemplate, PodKind, ReadRoles, Roles, number_of
from gputally.model.advice import PriorityChoice
from gputally.model.kube.meta import Camel, Meta
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import NEVER
from gputally.model.quantities import MOST, rounded_up
from gputally.model.rules import Rules
from gputally.placement.room import Room
from gputally.placement.unknown_workload import UnknownWorkload, group_of

MOST_PODS: Final = 1_000
"""The most pods of one kind in one request."""
MOST_KINDS: Final = 20
"""Different pods in one request."""

_MOST_NAME: Final = 253
"""Characters of a name in Kubernetes."""
PRIORITY_CLASS: Final = "PriorityClass"
_MOST_GPUS: Final = 10_000
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


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


def planned_by_parameters(query: Mapping[str, Sequence[str]], room: Room) -> list[PlannedPods]:
    """The pods with these parameters. Raises: InvalidRequest, also for a GPU model that no node has."""
    expect_known(query, WHAT_IF_PARAMETERS)
    single = {name: only(name, values) for name, values in query.items()}
    if "gpus" not in single:
        raise InvalidRequest("gpus is missing; name the GPUs of a pod, such as gpus=8")
    gpus = _positive(single, "gpus", _MOST_GPUS)
    requests: dict[str, str] = {GPU_RESOURCE: str(gpus)}
    requests |= {name: quantity_parameter(name, single[name]) for name in ("cpu", "memory") if name in single}
    spec: dict[str, Any] = {"containers": [{"resources": {"requests": requests}}]}
    if name := single.get("class", ""):
        spec["priorityClassName"] = _named("class", name)
    if model := single.get("model", ""):
        spec["affinity"] = _affinity(model, room)
    namespace = _named("namespace", single.get("namespace", "default"))
    return [PlannedPods("", plain_pod({"metadata": {"namespace": namespace}, "spec": spec}), _count(single))]


def _count(single: Mapping[str, str]) -> int:
    return _positive(single, "count", MOST_PODS) if "count" in single else 1


def _positive(single: Mapping[str, str], name: str, most: int) -> int:
    if found := number(single, name, 0, most):
        return found
    raise InvalidRequest(f"{name} '{single[name]}' is not valid; use a number from 1 to {most}")


def quantity_parameter(name: str, text: str) -> str:
    """The parameter, if it is a quantity. Raises: InvalidRequest."""
    try:
        if rounded_up(text, decimals=3) <= MOST:
            return text
    except ValueError:
        pass
    example = "4" if name == "cpu" else "32Gi"
    raise InvalidRequest(f"{name} '{text[:40]}' is not a quantity; use one such as {example}")


def _named(what: str, text: str) -> str:
    if not _NAME.fullmatch(text):
        raise InvalidRequest(
            f"{what} '{text[:40]}' is not a name in Kubernetes; use lower-case letters, digits, - and ."
        )
    return text


def _affinity(model: str, room: Room) -> dict[str, Any]:
    """Requires nodes whose label for the GPU model contains `model`, whatever its case."""
    by_key: dict[str, set[str]] = {}
    for node in room:
        assert node.place
        labels = dict(node.place.labels)
        if key := next((each for each in LABELS if labels.get(each)), None):
            by_key.setdefault(key, set()).add(labels[key])
    known = sorted({value for values in by_key.values() for value in values})
    terms = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": matching}]}
        for key, values in by_key.items()
        if (matching := sorted(each for each in values if model.lower() in each.lower()))
    ]
    if not terms:
        raise InvalidRequest(f"no node has a GPU model like '{model[:60]}'; there are {', '.join(known) or 'none'}")
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
