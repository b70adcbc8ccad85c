"""What bound pods take from their nodes; nearly all of them are like others, which are computed once."""

from functools import lru_cache
from typing import Final

from gputally.accounting.terms.serving_tiers import serves
from gputally.accounting.terms.tier import tier_of
from gputally.errors import MalformedObject
from gputally.model.kube import AnnotatedMeta, Resources
from gputally.model.objects.placeable_pod import PlaceableContainer, PlaceablePod, PlaceableSpec
from gputally.model.placement.needs import PODS, Amounts, Taken
from gputally.model.rules import Rules
from gputally.model.units import to_us
from gputally.placement.objects.needs_of import amounts_of

Quantities = tuple[tuple[str, str | int], ...]
_LEAST: Final[Amounts] = ((PODS, 1),)
"""Of a pod that cannot be read."""
_NOTHING: Final = Resources()


def taken_from(pod: PlaceablePod, rules: Rules) -> Taken:
    """What a bound pod takes from its node; at least its place among the pods, if it cannot be read."""
    spec, started = pod.spec, pod.status.start_time
    try:
        amounts = _amounts(pod)
    except MalformedObject:
        amounts = _LEAST
    return Taken(
        amounts,
        spec.priority or 0,
        is_serving=serves(tier_of(spec.priority_class_name, spec.priority, rules), rules),
        started_us=to_us(started) if started else None,
    )


def _amounts(pod: PlaceablePod) -> Amounts:
    spec = pod.spec
    if spec.init_containers or spec.resources or spec.overhead:
        return amounts_of(pod)
    containers = [each.resources or _NOTHING for each in spec.containers]
    return _of_containers(
        tuple([(tuple((each.limits or {}).items()), tuple((each.requests or {}).items())) for each in containers])
    )


@lru_cache(maxsize=4096)
def _of_containers(containers: tuple[tuple[Quantities, Quantities], ...]) -> Amounts:
    """The amounts of a pod with these limits and requests, and nothing else. Raises: MalformedObject."""
    resources = (Resources(limits=dict(limits), requests=dict(requests)) for limits, requests in containers)
    spec = PlaceableSpec(containers=tuple(PlaceableContainer(resources=each) for each in resources))
    return amounts_of(PlaceablePod(metadata=AnnotatedMeta(), spec=spec))
