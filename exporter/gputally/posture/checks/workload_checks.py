"""Checks of what creates GPU pods: their class, their time to save, their budget, and the nodes of their replicas."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from gputally.formatting.amounts import listed, shortened
from gputally.frameworks import kubeflow
from gputally.model.kube.meta import selects
from gputally.model.kube.pods import NO_ANNOTATIONS
from gputally.model.units import seconds_of
from gputally.posture.checks.quota_checks import workload_name
from gputally.posture.class_claims import Purpose, labelled_purpose, named_purpose
from gputally.posture.classes import SYSTEM_CLASSES, class_named
from gputally.posture.finding import ObjectName, Remark
from gputally.posture.gpu_workloads import GpuTemplate, GpuWorkload, gpu_pods, namespace_of, owner_of
from gputally.posture.objects import DisruptionBudget, PosturePod
from gputally.posture.quotas import capacity_of
from gputally.posture.state import PostureState, by_role

SAVE_DURATION: Final = "gputally.io/save-duration"
"""Annotation of a pod template: how long the pod needs after SIGTERM to save its work, such as 90s or 5m."""
_RUN_TO_COMPLETION = ("Job", kubeflow.PYTORCH_JOB)


def unknown_classes(state: PostureState) -> Iterator[Remark]:
    """Templates that name a class which does not exist."""
    for workload, template in _templates(state):
        name = template.class_name
        if name and name not in SYSTEM_CLASSES and not class_named(state.classes, name):
            yield Remark(
                workload_name(workload),
                f"priorityClassName {name}{by_role(template)} is not a PriorityClass",
                "the API server refuses its pods",
                f"use {listed([each.name for each in state.own], 'or')}" if state.own else "create the class",
            )


def classified_by_default(state: PostureState) -> Iterator[Remark]:
    """Templates without a class: the globalDefault decides, or nothing."""
    for workload, template in _templates(state):
        if template.class_name:
            continue
        default = None if template.is_admitted else state.default
        what = f"only the globalDefault {default.name} classifies its pods" if default else "its pods have no class"
        why = (
            f"admission writes {default.name} into them, so that nobody sees that the class was forgotten"
            if default
            else "they have priority 0: every class above 0 may preempt them"
        )
        yield Remark(workload_name(workload), f"{what}{by_role(template)}", why, "set priorityClassName")


def grace_below_save_time(state: PostureState) -> Iterator[Remark]:
    """Pods that are killed before they have saved their work."""
    for workload, template in _templates(state):
        written = (template.pod.metadata.annotations or NO_ANNOTATIONS).get(SAVE_DURATION)
        if written is None:
            continue
        save_s = seconds_of(written.strip())
        if save_s is None:
            yield Remark(
                workload_name(workload),
                f"annotation {SAVE_DURATION}: {written!r} is not a duration",
                "the time to save cannot be compared with terminationGracePeriodSeconds",
                "use a duration such as 90s or 1h30m",
            )
        elif save_s > template.grace_s:
            yield Remark(
                workload_name(workload),
                f"saving takes {written}, but terminationGracePeriodSeconds{by_role(template)} is {template.grace_s}",
                "a preempted pod is killed before its work is saved, and loses all since the last checkpoint",
                f"set terminationGracePeriodSeconds to at least {save_s}",
            )


def budgets_that_preemption_ignores(state: PostureState) -> Iterator[Remark]:
    """PodDisruptionBudgets of pods that another class may preempt.

    Source: k8s.io/kubernetes pkg/scheduler/framework/preemption: victims are deleted, not evicted.
    """
    preemptible = defaultdict[str, list[GpuWorkload]](list)
    for workload in state.workloads:
        if any(map(state.preemptors, workload.templates)):
            preemptible[workload.namespace].append(workload)
    for budget in state.found.poddisruptionbudgets or ():
        place = namespace_of(budget.metadata)
        if covered := [each for each in preemptible[place] if _covers(budget, each)]:
            preemptors = {
                name: None for each in covered for template in each.templates for name in state.preemptors(template)
            }
            victims = listed(shortened([f"{each.kind} {each.name}" for each in covered]))
            yield Remark(
                ObjectName("PodDisruptionBudget", place, budget.metadata.name),
                f"{_limit(budget)} does not hold when {listed(list(preemptors), 'or')} preempts {victims}",
                "the scheduler deletes victims without the Eviction API, and only prefers victims without a budget",
                "give these pods a class that nothing may preempt; the budget still holds when nodes are drained",
            )


def _limit(budget: DisruptionBudget) -> str:
    most = budget.spec.max_unavailable
    return f"minAvailable {budget.spec.min_available}" if most is None else f"maxUnavailable {most}"


def _covers(budget: DisruptionBudget, workload: GpuWorkload) -> bool:
    return any(selects(budget.spec.selector, each.pod.metadata.labels or {}) for each in workload.templates)


def _templates(state: PostureState) -> Iterator[tuple[GpuWorkload, GpuTemplate]]:
    return ((workload, template) for workload in state.workloads for template in workload.templates)


def replicas_on_one_node(state: PostureState) -> Iterator[Remark]:
    """Serving workloads with several ready pods, all on one node, although another node has GPUs."""
    nodes = state.found.nodes
    if nodes is not None and capacity_of(nodes, state.rules).nodes < 2:  # noqa: PLR2004 - there is nowhere else
        return
    for workload, pods in sorted(_ready_pods(state).items()):
        used = {each.spec.node_name for each in pods}
        if len(pods) > 1 and len(used) == 1:
            yield Remark(
                workload,
                f"all {len(pods)} ready replicas are on node {used.pop()}",
                "one failure, drain or preemption on this node stops the whole service",
                "add topologySpreadConstraints with topologyKey kubernetes.io/hostname, or a podAntiAffinity",
            )


def _ready_pods(state: PostureState) -> dict[ObjectName, list[PosturePod]]:
    """Ready pods that serve users, by what created them."""
    found = defaultdict[ObjectName, list[PosturePod]](list)
    for pod in gpu_pods(state.found, state.rules) or ():
        kind, name = owner_of(pod)
        if kind not in ("Pod", *_RUN_TO_COMPLETION) and _is_ready(pod) and _serves(pod, state):
            found[ObjectName(kind, namespace_of(pod.metadata), name)].append(pod)
    return found


def _is_ready(pod: PosturePod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions or ())


def _serves(pod: PosturePod, state: PostureState) -> bool:
    """Whether a pod serves users: by its label, else by its class."""
    if purpose := labelled_purpose(pod.metadata.labels or {}):
        return purpose is Purpose.SERVING
    found = class_named(state.classes, pod.spec.priority_class_name)
    return found is not None and named_purpose(found) is Purpose.SERVING
