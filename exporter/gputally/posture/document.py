"""The posture of a cluster as one document: classes, permitted preemptions, quotas, the default, and findings."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from gputally.formatting.amounts import listed, shortened
from gputally.model.kube.meta import AnnotatedMeta
from gputally.model.kube.pods import PREEMPTS, PodMeta
from gputally.model.rules import Rules
from gputally.posture.checks.check_table import CHECKS
from gputally.posture.classes import CatalogueClass, ClassChange, class_changes
from gputally.posture.finding import ACCEPT, FAILING, Finding, ObjectName, Severity
from gputally.posture.gpu_workloads import gpu_pods, namespace_of
from gputally.posture.objects import KINDS, PostureInput, PostureResource
from gputally.posture.preemptions import (
    ObservedPreemptions,
    PermittedPreemptions,
    PreemptionHistory,
    observed_preemptions,
    permitted_preemptions,
)
from gputally.posture.quotas import GpuCapacity, QuotaSum, ScopedQuota, capacity_of, quota_sums
from gputally.posture.state import PostureState, posture_state

VERSION: Final = 1
"""Raised when a field of the JSON is removed or changes its meaning; new fields do not change it."""
_CLUSTER_SCOPED: Final = frozenset({"PriorityClass", "Node", "Namespace"})
_WORST_FIRST: Final = tuple(Severity)


class DefaultUse(Struct, frozen=True, kw_only=True):
    """The globalDefault ("" for none) and the GPU pods that have it; counts are None if they are unknown.

    `templates_without_class` are the workloads of which it is certain that they name no class.
    """

    name: str
    gpu_pods: int | None
    pods_with_default: int | None
    templates_without_class: tuple[str, ...]
    sentences: tuple[str, ...]


def default_use(state: PostureState) -> DefaultUse:
    """The use of the default, in numbers and words."""
    known = state.found.knows(PostureResource.CLASSES)
    name = state.default.name if state.default else ""
    pods = gpu_pods(state.found, state.rules)
    having = [each for each in pods or () if each.spec.priority_class_name in (name, "")]
    count = None if pods is None or not known else len(having)
    without = tuple(
        f"{each.kind} {each.namespace}/{each.name}"
        for each in state.workloads
        if not all(template.class_name for template in each.templates)
    )
    return DefaultUse(
        name=name,
        gpu_pods=None if pods is None else len(pods),
        pods_with_default=count,
        templates_without_class=without,
        sentences=tuple(_sentences(state, count, None if pods is None else len(pods), without)),
    )


def _sentences(state: PostureState, count: int | None, of: int | None, without: tuple[str, ...]) -> list[str]:
    if not state.found.knows(PostureResource.CLASSES):
        return ["The PriorityClasses are unknown, and so is the default."]
    default, found = state.default, []
    if default is None:
        below = [each.name for each in state.own if each.value < 0]
        above = [each.name for each in state.own if each.value > 0 and each.preemption_policy == PREEMPTS]
        found.append(_without_default(below, above))
    else:
        found.append(
            f"Pods without a class get {default.name} (value {default.value}): admission writes it into them, so a pod "
            "that forgot its class looks as if it had chosen this one."
        )
    if of is None or count is None:
        found.append("The GPU pods are unknown.")
    elif of:
        which = "that have it, and so may have forgotten their class" if default else "without a class"
        found.append(f"GPU pods {which}: {count} of {of}.")
    if without:
        found.append(f"Workloads that name no class: {listed(shortened(without))}.")
    return found


def _without_default(below: list[str], above: list[str]) -> str:
    text = "No class is the globalDefault: pods without a class have priority 0"
    if below:
        text += f", and may preempt {listed(below)}"
    return f"{text}." if not above else f"{text}; {listed(above)} may preempt them."


class Unchecked(Struct, frozen=True, kw_only=True):
    """What is not known, why, and the checks that are impossible or incomplete without it."""

    resource: str
    why: str
    impossible: tuple[str, ...]
    incomplete: tuple[str, ...]


class Posture(Struct, frozen=True, kw_only=True):
    """The document. `classes` and `quotas` are None if they are unknown, as is `capacity`.

    `observed` and `class_changes` come from a ledger, and are None without one.

    `accepted` are findings that an annotation of the object says are intended. `ignored` counts objects of kinds that
    are not read. `not_modelled` are objects of such kinds whose pods request GPUs, or may do so: `RayJob.ray.io ml/a`.
    """

    source: str
    classes: tuple[CatalogueClass, ...] | None
    preemptions: tuple[PermittedPreemptions, ...]
    quotas: tuple[ScopedQuota, ...] | None
    sums: tuple[QuotaSum, ...]
    capacity: GpuCapacity | None
    default: DefaultUse
    observed: ObservedPreemptions | None
    class_changes: tuple[ClassChange, ...] | None
    findings: tuple[Finding, ...]
    accepted: tuple[Finding, ...]
    unchecked: tuple[Unchecked, ...]
    ignored: Mapping[str, int]
    not_modelled: tuple[str, ...] = ()

    @property
    def fails(self) -> bool:
        """Whether a finding is an error or a warning."""
        return any(each.severity in FAILING for each in self.findings)


def posture_of(found: PostureInput, rules: Rules, history: PreemptionHistory | None = None) -> Posture:
    """The posture of these objects, under the rules of tiers and resources, beside what a ledger has."""
    state = posture_state(found, rules)
    capacity = None if found.nodes is None else capacity_of(found.nodes, rules)
    accepts = _acceptances(state)
    findings = sorted(_findings(state), key=lambda each: (_WORST_FIRST.index(each.severity), each.check, each.object))
    return Posture(
        source=found.source,
        classes=state.classes if found.knows(PostureResource.CLASSES) else None,
        preemptions=permitted_preemptions(state.classes),
        quotas=state.quotas if found.knows(PostureResource.QUOTAS) else None,
        sums=quota_sums(state.quotas, capacity),
        capacity=capacity,
        default=default_use(state),
        observed=observed_preemptions(history, state.classes, rules) if history else None,
        class_changes=class_changes(history.classes, history.window) if history else None,
        findings=tuple(each for each in findings if each.check not in accepts.get(each.object, ())),
        accepted=tuple(each for each in findings if each.check in accepts.get(each.object, ())),
        unchecked=tuple(_unchecked(found)),
        ignored=found.ignored,
        not_modelled=tuple(each.name for each in found.unknown if each.may_have_gpus(rules)),
    )


def _findings(state: PostureState) -> Iterator[Finding]:
    for check in CHECKS:
        if all(state.found.knows(resource) for resource in check.needs):
            for remark in check.find(state):
                yield Finding(
                    check=check.name,
                    severity=check.severity,
                    object=remark.object,
                    what=remark.what,
                    why=remark.why,
                    remedy=remark.remedy,
                )


def _acceptances(state: PostureState) -> dict[ObjectName, frozenset[str]]:
    """The accepted checks by object; a workload may also have the annotation in its template."""
    found: dict[ObjectName, frozenset[str]] = {}
    for name, metadata in _annotated(state):
        if metadata.annotations and (written := metadata.annotations.get(ACCEPT)):
            found[name] = found.get(name, frozenset()) | frozenset(map(str.strip, written.split(",")))
    return found


def _annotated(state: PostureState) -> Iterator[tuple[ObjectName, AnnotatedMeta | PodMeta]]:
    for kind in KINDS:
        for each in getattr(state.found, kind.resource) or ():
            place = "" if kind.kind in _CLUSTER_SCOPED else namespace_of(each.metadata)
            yield ObjectName(kind.kind, place, each.metadata.name), each.metadata
    for workload in state.workloads:
        for template in workload.templates:
            yield ObjectName(workload.kind, workload.namespace, workload.name), template.pod.metadata


def _unchecked(found: PostureInput) -> Iterator[Unchecked]:
    for each in found.not_read:
        missing = not found.knows(each.resource)
        impossible = _names(check.name for check in CHECKS if missing and each.resource in check.needs)
        partly = (check.name for check in CHECKS if each.resource in (*check.reads, *check.needs))
        yield Unchecked(
            resource=each.resource,
            why=each.why,
            impossible=impossible,
            incomplete=_names(name for name in partly if name not in impossible),
        )


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
