"""Checks of ResourceQuotas: requests that can never be admitted, and classes that nothing limits."""

from collections.abc import Iterator, Sequence

from gputally.formatting.amounts import counted, listed
from gputally.posture.finding import ObjectName, Remark
from gputally.posture.gpu_workloads import GpuTemplate, GpuWorkload
from gputally.posture.quotas import ScopedQuota
from gputally.posture.state import PostureState, by_role, total


def workload_name(found: GpuWorkload) -> ObjectName:
    """The object of findings about a workload."""
    return ObjectName(found.kind, found.namespace, found.name)


def unreadable_quantities(state: PostureState) -> Iterator[Remark]:
    """GPU quantities that are not whole numbers."""
    why, remedy = "the API server refuses it: devices are whole numbers", "use a whole number of devices"
    for workload in state.workloads:
        for template in workload.templates:
            if template.invalid:
                what = f"its request{by_role(template)}: {template.invalid}"
                yield Remark(workload_name(workload), what, why, remedy)
    for quota in state.quotas:
        if quota.invalid:
            yield Remark(_quota_name(quota), f"hard limit of {quota.resource}: {quota.invalid}", why, remedy)


def requests_above_quota(state: PostureState) -> Iterator[Remark]:
    """Pods that request more than a quota has in all."""
    for workload in state.workloads:
        for template in workload.templates:
            for quota, amount in _limiting(state, workload, template):
                if amount > quota.hard:
                    yield Remark(
                        workload_name(workload),
                        f"a pod{by_role(template)} requests {amount} {quota.resource}, but ResourceQuota {quota.name} "
                        f"({quota.scope}) allows {quota.hard}",
                        "the pod is refused at its creation, whatever is free: it never becomes pending, and only an "
                        "Event of its owner says so",
                        f"raise the quota to {amount}, split the request into smaller pods, or use another class",
                    )


def replicas_above_quota(state: PostureState) -> Iterator[Remark]:
    """Workloads that work only as a whole, and together request more than a quota has in all."""
    for workload in state.workloads:
        if workload.needs_all or workload.kind in ("Deployment", "StatefulSet"):
            yield from _sums_above(state, workload)


def _sums_above(state: PostureState, workload: GpuWorkload) -> Iterator[Remark]:
    for quota in _quotas_of(state, workload):
        counted_by = [each for each in workload.templates if quota.counts(state.class_of(each))]
        amount = total(counted_by, quota.resource)
        fits_alone = all(dict(each.units).get(quota.resource, 0) <= quota.hard for each in counted_by)
        if amount > quota.hard and fits_alone:
            pods = counted(sum(each.replicas for each in counted_by), "pod")
            effect = "the others wait with their GPUs for pods that are refused" if workload.needs_all else ""
            yield Remark(
                workload_name(workload),
                f"its {pods} request {amount} {quota.resource}, but ResourceQuota {quota.name} ({quota.scope}) allows "
                f"{quota.hard}",
                effect or "the last replicas are refused at their creation: they never become pending",
                f"raise the quota to {amount}, or request less",
            )


def classes_without_quota(state: PostureState) -> Iterator[Remark]:
    """Classes that no quota of a namespace limits, although it limits others."""
    places = sorted({(each.namespace, each.resource) for each in state.quotas if each.is_by_class and each.terms})
    for namespace, resource in places:
        limits = [each for each in state.quotas_by_namespace[namespace] if each.resource == resource]
        free = [each.name for each in state.own if not any(limit.counts(each.name) for limit in limits)]
        if free:
            yield Remark(
                ObjectName("Namespace", "", namespace),
                f"no quota limits {resource} of {listed(free)}, although other classes have one",
                "pods of these classes may take every GPU of the cluster, and a tenant at its limit may choose them",
                "add a quota for each of these classes, 0 for those that the tenant must not use, or one for all pods",
            )


def _limiting(state: PostureState, workload: GpuWorkload, template: GpuTemplate) -> Iterator[tuple[ScopedQuota, int]]:
    """The quotas that count these pods, and what one pod requests of their resource."""
    for quota in _quotas_of(state, workload):
        if quota.counts(state.class_of(template)):
            yield quota, dict(template.units).get(quota.resource, 0)


def _quotas_of(state: PostureState, workload: GpuWorkload) -> Sequence[ScopedQuota]:
    return [each for each in state.quotas_by_namespace.get(workload.namespace, ()) if not each.invalid]


def _quota_name(found: ScopedQuota) -> ObjectName:
    return ObjectName("ResourceQuota", found.namespace, found.name)
