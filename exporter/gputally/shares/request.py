"""The devices that a pod effectively requests, by resource: the peak of its containers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from gputally.errors import MalformedObject
from gputally.model.kube.pods import Container, Pod
from gputally.model.quantities import whole
from gputally.model.rules import Rules
from gputally.shares.scheme import Amounts
from gputally.shares.schemes import SCHEMES, Units, describes, rule_of

Quantities = Mapping[str, str | int]
_ADJUSTING: Final = tuple(each for each in SCHEMES if each.adjusts)
_MAX_DEVICES = 10**9
"""More than any node has. Anyone may request more, but the ledger's integers have 64 bits."""
_MAX_NAME = 317
"""Characters of a qualified name. The API server accepts no pod with a longer one, but checks no template."""
_MAX_RESOURCES = 64
"""More GPU resources than any node offers, so a pod that requests more never runs."""


def peak_of(init_containers: Sequence[Container], by_container: Sequence[Amounts]) -> Amounts:
    """The maximum at any time; `by_container` are the requests of the init containers, then those of the containers.

    Init containers run one after the other before the containers; sidecars (init containers with restartPolicy Always)
    run in parallel with all that follow.

    Source: k8s.io/component-helpers resource/helpers.go, PodRequests.
    """
    if len(by_container) == 1:
        return by_container[0]
    sidecars, peak = _init_usage(zip(init_containers, by_container, strict=False))
    for amounts in by_container[len(init_containers) :]:
        _add(sidecars, amounts)
    for name, amount in sidecars.items():
        peak[name] = max(amount, peak.get(name, 0))
    return peak


def _init_usage(init_containers: Iterable[tuple[Container, Amounts]]) -> tuple[Amounts, Amounts]:
    """The sum of the sidecars, and the maximum at any time while init containers run."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container, amounts in init_containers:
        running = dict(sidecars)
        _add(running, amounts)
        peak |= {name: max(amount, peak.get(name, 0)) for name, amount in running.items()}
        if container.restart_policy == "Always":
            sidecars = running
    return sidecars, peak


def _add(sums: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        sums[name] = sums.get(name, 0) + amount


@lru_cache(maxsize=4096)
def requested(quantity: str | int) -> int:
    """Devices of an extended resource's quantity, which the API server limits to whole numbers; at most 10^9.

    Raises: ValueError for a fraction, and for anything else that is not a whole number.
    """
    try:
        return min(whole(quantity), _MAX_DEVICES)
    except ValueError:
        raise ValueError(f"{quantity!r} is not a whole number of devices") from None


def count(quantity: str | int) -> int:
    """Devices of a quantity that a node offers. Raises: ValueError also for more than any node has."""
    amount = requested(quantity)
    if amount >= _MAX_DEVICES:
        raise ValueError(f"{quantity!r} is more devices than a node has")
    return amount


@lru_cache(maxsize=4096)
def limited(units: Units, offered: Units | None, rules: Rules) -> Units | None:
    """`units` limited to what a node offered; None if they do not exceed it, or if it is unknown.

    Resources that only describe devices are not offered; the number of devices limits them.
    """
    if offered is None:
        return None
    maximum = dict(offered)
    found = tuple(
        (name, amount if describes(name, rules) else min(amount, maximum.get(name, 0))) for name, amount in units
    )
    return None if found == units else found


def offered_units(quantities: Quantities | None, rules: Rules) -> dict[str, int]:
    """Devices by resource in a node's capacity or allocatable. Raises: ValueError for a broken quantity."""
    return {name: count(amount) for name, amount in (quantities or {}).items() if rule_of(name, rules)}


def effective_units(pod: Pod, rules: Rules) -> Units:
    """Devices by resource name that the scheduler reserves for `pod`; empty for a pod without GPUs.

    The result is limited to 10^9 devices per resource and to 64 resources.

    Raises: MalformedObject for a quantity that is not a whole number, or for a name that no pod can have.
    """
    init_containers = pod.spec.init_containers or ()
    try:
        by_container = [_gpus(container, rules) for container in (*init_containers, *pod.spec.containers)]
        for scheme in _ADJUSTING:
            by_container = scheme.effective(pod, by_container, rules)
    except ValueError as error:
        raise MalformedObject(pod.metadata.uid, str(error)) from None
    peak = peak_of(init_containers, by_container)
    return tuple(
        sorted([(name, min(amount, _MAX_DEVICES)) for name, amount in peak.items() if amount])[:_MAX_RESOURCES]
    )


def _gpus(container: Container, rules: Rules) -> Amounts:
    """Requests equal limits for extended resources; a limit without a request also counts as one."""
    resources = container.resources
    if resources is None:
        return {}
    amounts = (resources.limits or {}) | (resources.requests or {})
    for name in amounts:
        if len(name) > _MAX_NAME:  # before caches remember it
            raise ValueError("the name of a resource is too long")
    return {name: requested(amount) for name, amount in amounts.items() if rule_of(name, rules)}


def holds_gpu(pod: Pod, rules: Rules) -> bool:
    """Whether a container of `pod` names a GPU resource, or a scheme may add one; cheaper than counting."""
    return any_resource(pod, rule_of, rules) or may_be_added(pod, rules)


def may_be_added(pod: Pod, rules: Rules) -> bool:
    """Whether a scheme may add GPUs that no container names."""
    return any(scheme.may_request(pod, rules) for scheme in SCHEMES)


def any_resource(pod: Pod, matches: Callable[[str, Rules], object], rules: Rules) -> bool:
    """Whether a container of `pod` names a resource that `matches`."""
    for container in (*pod.spec.containers, *(pod.spec.init_containers or ())):
        if resources := container.resources:
            for name in (*(resources.limits or ()), *(resources.requests or ())):
                if matches(name, rules):
                    return True
    return False
