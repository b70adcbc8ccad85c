"""Requests of containers as integers, and the largest ones while a bound pod is resized in place.

While a resize waits or is in progress, three requests of a container differ: those of the spec, those that its kubelet
has allocated to it, and those in force. The scheduler counts the largest of each resource. It leaves the spec out once
the kubelet has found that the new size can never fit its node.

Source: k8s.io/component-helpers v0.36 resource/helpers.go, PodRequests with UseStatusResources.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from gputally.model.kube.placeable_pods import (
    PlaceableContainer,
    PlaceableContainerStatus,
    PlaceablePod,
    PlaceableSpec,
    PlaceableStatus,
)
from gputally.model.kube.pods import Resources
from gputally.model.quantities import CPU, MOST, rounded_up

Quantities = Mapping[str, str | int]
_Statuses = Mapping[str, PlaceableContainerStatus]
"""Statuses by the name of the container, where the kubelet says what is in force."""
_NOTHING: Final[Quantities] = {}


@lru_cache(maxsize=8192)
def amount_of(resource: str, quantity: str | int) -> int:
    """CPU in millicores, all else in whole units; rounded up, as Kubernetes does, and limited to 64 bits.

    Raises: ValueError for anything else than a quantity that is not negative.
    """
    try:
        return min(rounded_up(quantity, decimals=3 if resource == CPU else 0), MOST)
    except ValueError as error:
        raise ValueError(f"{error} of {resource}") from None


def counted_spec(pod: PlaceablePod) -> PlaceableSpec:
    """The spec with the requests that the scheduler counts of a bound pod; its own unless it is being resized."""
    spec, status = pod.spec, pod.status
    written = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    statuses = {each.name: each for each in written if each.resources}
    if (spec.resources is None or status.resources is None) and _agree(spec, statuses):
        return spec  # nearly all pods, at each of their changes
    try:
        return _counted_spec(spec, statuses, status)
    except ValueError:
        return spec  # a quantity that nobody can read


def requested(resources: Resources | None) -> Quantities:
    """Requests, and limits of what is not requested."""
    return (resources.limits or {}) | (resources.requests or {}) if resources else _NOTHING


def _agree(spec: PlaceableSpec, statuses: _Statuses) -> bool:
    """Whether the spec, what is allocated and what is in force are the same for each container."""
    for each in (*(spec.init_containers or ()), *spec.containers):
        if (status := statuses.get(each.name)) and status.resources:
            own = each.resources.requests if each.resources else None
            if not own == status.allocated_resources == status.resources.requests:
                return False
    return True


def _counted_spec(spec: PlaceableSpec, statuses: _Statuses, status: PlaceableStatus) -> PlaceableSpec:
    keeps_spec = not _is_infeasible(status)

    def counted(container: PlaceableContainer) -> PlaceableContainer:
        found = statuses.get(container.name)
        if found is None or found.resources is None:
            return container
        allocated, actual = found.allocated_resources or _NOTHING, found.resources.requests or _NOTHING
        own = requested(container.resources) if keeps_spec else _NOTHING
        return replace(container, resources=_largest(own, allocated, actual))

    inits = [counted(each) if each.restart_policy == "Always" else each for each in spec.init_containers or ()]
    return replace(
        spec,
        containers=tuple(map(counted, spec.containers)),
        init_containers=tuple(inits),
        resources=_whole(spec.resources, status, keeps_spec=keeps_spec),
    )


def _is_infeasible(status: PlaceableStatus) -> bool:
    for each in status.conditions or ():
        if each.type == "PodResizePending":
            return each.reason == "Infeasible"
    return False


def _whole(resources: Resources | None, status: PlaceableStatus, *, keeps_spec: bool) -> Resources | None:
    """The largest request for the pod as a whole; its kubelet writes amounts of all resources of all pods."""
    if resources is None or status.resources is None:
        return resources
    own = requested(resources)
    allocated, actual = (
        {name: given[name] for name in own if name in given}
        for given in (status.allocated_resources or _NOTHING, status.resources.requests or _NOTHING)
    )
    return _largest(own if keeps_spec else _NOTHING, allocated, actual)


def _largest(*several: Quantities) -> Resources:
    """The largest request of each resource."""
    found: dict[str, str | int] = {}
    for given in several:
        for name, quantity in given.items():
            if name not in found or amount_of(name, quantity) > amount_of(name, found[name]):
                found[name] = quantity
    return Resources(requests=found)
