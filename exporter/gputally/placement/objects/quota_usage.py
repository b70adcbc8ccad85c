"""What a pod uses of ResourceQuotas, and what these limit.

Source: k8s.io/kubernetes pkg/quota/v1/evaluator/core/pods.go, PodUsageFunc and podComputeUsageHelper.
"""

from collections.abc import Mapping
from typing import Final

from gputally.errors import MalformedObject
from gputally.model.kube import Container, ResourceQuota
from gputally.model.objects.placeable_pod import PlaceablePod
from gputally.model.objects.quota_spec import LIMITS, REQUESTS
from gputally.model.placement.needs import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Amounts
from gputally.placement.objects.needs_of import amounts_of
from gputally.placement.objects.quantity import amount_of
from gputally.placement.objects.quota_scopes import CountedPod, terms_of
from gputally.placement.policy.pod_quotas import PodQuota
from gputally.shares.peak import peak_of

_PODS: Final = (PODS, "count/pods")
_NATIVE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_HUGEPAGES: Final = "hugepages-"
_OF_CLAIMS: Final = "requests.storage"
_MOST_KEYS: Final = 64
"""More than a quota about pods has."""


def usage_of(pod: PlaceablePod) -> dict[str, int]:
    """What the pod uses, by the keys of quotas. Raises: MalformedObject for an invalid quantity."""
    found = dict.fromkeys(_PODS, 1)
    for resource, amount in amounts_of(pod):
        if resource != PODS:
            found[f"{REQUESTS}{resource}"] = amount
        if resource in _NATIVE or resource.startswith(_HUGEPAGES):
            found[resource] = amount
    return found | {f"{LIMITS}{resource}": amount for resource, amount in _limits(pod).items() if resource in _NATIVE}


def counted_pod(pod: PlaceablePod) -> CountedPod:
    """What the scopes of quotas read of the pod."""
    containers = (*(pod.spec.init_containers or ()), *pod.spec.containers)
    given = [each.resources for each in containers] + [pod.spec.resources]
    named = {name for each in given if each for name in {**(each.requests or {}), **(each.limits or {})}}
    return CountedPod(
        class_name=pod.spec.priority_class_name,
        best_effort=named.isdisjoint((CPU, MEMORY)),
        terminating=pod.spec.active_deadline_seconds is not None,
    )


def quota_of(found: ResourceQuota) -> PodQuota:
    """What the quota limits of pods. Raises: MalformedObject for an invalid quantity."""
    meta, status = found.metadata, found.status
    hard = {**(found.spec.hard or {}), **(status.hard or {})} if status.hard else found.spec.hard or {}
    try:
        return PodQuota(
            namespace=meta.namespace,
            name=meta.name,
            hard=_amounts(hard),
            used=_amounts(status.used or {}),
            terms=terms_of(found.spec),
        )
    except ValueError as error:
        raise MalformedObject(meta.uid, f"quota {meta.namespace}/{meta.name}: {error}") from None


def _amounts(given: Mapping[str, str | int]) -> Amounts:
    keys = sorted(key for key in given if _is_about_pods(key))[:_MOST_KEYS]
    return tuple([(key, amount_of(resource_of(key), given[key])) for key in keys])


def _is_about_pods(key: str) -> bool:
    if key in _PODS or key in _NATIVE:
        return True
    return key.startswith((REQUESTS, LIMITS, _HUGEPAGES)) and key != _OF_CLAIMS


def resource_of(key: str) -> str:
    """`cpu` of `requests.cpu`; `pods` of `count/pods`."""
    return PODS if key in _PODS else key.removeprefix(REQUESTS).removeprefix(LIMITS)


def _limits(pod: PlaceablePod) -> Mapping[str, int]:
    init_containers = pod.spec.init_containers or ()
    try:
        limits = peak_of(init_containers, [_limits_of(each) for each in (*init_containers, *pod.spec.containers)])
        return dict(limits) | _amounts_in(pod.spec.resources.limits if pod.spec.resources else None)
    except ValueError as error:
        raise MalformedObject(pod.metadata.uid, str(error)) from None


def _limits_of(container: Container) -> dict[str, int]:
    return _amounts_in(container.resources.limits if container.resources else None)


def _amounts_in(given: Mapping[str, str | int] | None) -> dict[str, int]:
    return {name: amount_of(name, quantity) for name, quantity in (given or {}).items()}
