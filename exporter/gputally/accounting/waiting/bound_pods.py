"""Computes what bound pods take from their nodes, once for all that are alike, as nearly all are."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from gputally.accounting.base.compact import shared
from gputally.accounting.terms.tier import serves, tier_of
from gputally.errors import MalformedObject
from gputally.model.kube.meta import Object
from gputally.model.kube.placeable_pods import PlaceableContainer, PlaceablePod, PlaceableSpec
from gputally.model.kube.pods import ENDED_PHASES, Container, PodMeta, Resources
from gputally.model.needs import Amounts, Taken
from gputally.model.observation import OtherPod
from gputally.model.quantities import PODS
from gputally.model.rules import Rules
from gputally.model.units import to_us
from gputally.placement.needs import amounts_of
from gputally.placement.resource_requests import counted_spec

Quantities = tuple[tuple[str, str | int], ...]
_Given = tuple[Quantities, Quantities]
"""Limits and requests."""
_Container = tuple[str | None, _Given]
"""The restart policy of a container, and what it is given."""
_Asked = tuple[tuple[_Container, ...], tuple[_Container, ...], _Given, Quantities]
"""Init containers, containers, what the pod is given as a whole, and its overhead."""
_LEAST: Final[Amounts] = ((PODS, 1),)
"""What a bound pod takes if its requests cannot be read: its place among the pods."""
_NOTHING: Final[_Given] = ((), ())
Matters = Callable[[str], bool]
"""Whether the pods on a node of that name matter."""


def taken_from(pod: PlaceablePod, rules: Rules) -> Taken:
    """What a bound pod takes from its node, resized or not; at least its place among the pods, if it cannot be read."""
    alike, started = taken_alike(pod, rules), pod.status.start_time
    return Taken(alike.amounts, alike.priority, alike.is_serving, to_us(started)) if started else alike


def taken_alike(pod: PlaceablePod, rules: Rules) -> Taken:
    """What a bound pod takes, without its start: one object for all pods with the same requests, priority and class."""
    spec = counted_spec(pod)
    asked = (
        _containers(spec.init_containers) if spec.init_containers else (),
        _containers(spec.containers),
        _given(spec.resources),
        tuple(spec.overhead.items()) if spec.overhead else (),
    )
    return _alike(asked, spec.priority, spec.priority_class_name, rules)


def _containers(containers: Sequence[Container]) -> tuple[_Container, ...]:
    return tuple([(each.restart_policy, _given(each.resources)) for each in containers])


def _given(resources: Resources | None) -> _Given:
    if resources is None:
        return _NOTHING
    limits, requests = resources.limits, resources.requests
    return tuple(limits.items()) if limits else (), tuple(requests.items()) if requests else ()


@lru_cache(maxsize=4096)
def _alike(asked: _Asked, priority: int | None, class_name: str, rules: Rules) -> Taken:
    init_containers, containers, resources, overhead = asked
    spec = PlaceableSpec(
        init_containers=tuple(map(_container, init_containers)),
        containers=tuple(map(_container, containers)),
        resources=_resources(resources),
        overhead=dict(overhead),
    )
    try:
        amounts = amounts_of(PlaceablePod(metadata=PodMeta(), spec=spec))
    except MalformedObject:
        amounts = _LEAST
    is_serving = serves(tier_of(class_name, priority, rules), rules)
    found: Taken = shared(Taken(amounts, priority or 0, is_serving=is_serving))
    return found


def _container(given: _Container) -> PlaceableContainer:
    return PlaceableContainer(restart_policy=given[0], resources=_resources(given[1]))


def _resources(given: _Given) -> Resources:
    return Resources(limits=dict(given[0]), requests=dict(given[1]))


def other_pod(found: Object, at_us: int, since_us: int, *, rules: Rules, matters: Matters) -> OtherPod | None:
    """What matters of a pod without GPUs, None if nothing does."""
    if not isinstance(found, PlaceablePod) or not (node := found.spec.node_name) or not matters(node):
        return None
    return OtherPod(
        uid=found.metadata.uid,
        node=node,
        taken=None if found.status.phase in ENDED_PHASES else taken_alike(found, rules),
        version=found.metadata.resource_version,
        at_us=at_us,
        since_us=since_us,
    )
