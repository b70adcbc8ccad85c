"""How many devices of which resource a pod effectively asks for."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache

from gputally.errors import MalformedObject
from gputally.model.kube import Container, Pod
from gputally.model.rules import ResourceRule

_SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_QUANTITY = re.compile(r"(\d+)(k|M|G|Ki|Mi|Gi)?")
_MOST = 10**9
"""No node has so many; anybody may ask for more, and a ledger's numbers have 64 bits."""


@lru_cache(maxsize=4096)
def resource_rule(name: str, resources: tuple[ResourceRule, ...]) -> ResourceRule | None:
    """The first rule whose glob matches the resource `name`; None when it is no GPU."""
    return next((rule for rule in resources if fnmatchcase(name, rule.pattern)), None)


@lru_cache(maxsize=4096)
def count(quantity: str | int) -> int:
    """Devices of an extended resource's quantity, which the API server holds to whole numbers.

    Raises: ValueError for a fraction, anything else that is no whole number, or an impossible one.
    """
    match = _QUANTITY.fullmatch(str(quantity))
    amount = int(match[1]) * _SUFFIXES[match[2] or ""] if match else None
    if amount is None or amount > _MOST:
        raise ValueError(f"{quantity!r} is no whole number of devices")
    return amount


def effective_units(pod: Pod, resources: tuple[ResourceRule, ...]) -> tuple[tuple[str, int], ...]:
    """Devices by resource name the scheduler sets aside for `pod`; empty for a pod without GPUs.

    Init containers run one after the other before the containers; sidecars (init containers with
    restartPolicy Always) run beside everything that comes after them.

    Raises: MalformedObject for a quantity that is no whole number.
    Source: k8s.io/component-helpers resource/helpers.go, PodRequests.
    """
    names = {name for container in _all_containers(pod) for name in _requests(container)}
    gpus = sorted(name for name in names if resource_rule(name, resources))
    try:
        units = ((name, _effective(pod, name)) for name in gpus)
        return tuple((name, amount) for name, amount in units if amount)
    except ValueError as error:
        raise MalformedObject(pod.metadata.uid, str(error)) from None


def _effective(pod: Pod, name: str) -> int:
    sidecars = peak = 0
    for container in pod.spec.init_containers or ():
        amount = count(_requests(container).get(name, 0))
        peak = max(peak, sidecars + amount)
        if container.restart_policy == "Always":
            sidecars += amount
    together = sum(count(_requests(container).get(name, 0)) for container in pod.spec.containers)
    return max(peak, sidecars + together)


def _all_containers(pod: Pod) -> Iterator[Container]:
    yield from pod.spec.containers
    yield from pod.spec.init_containers or ()


def _requests(container: Container) -> dict[str, str | int]:
    """Requests equal limits for extended resources; a limit alone is a request too."""
    resources = container.resources
    if resources is None:
        return {}
    return (resources.limits or {}) | (resources.requests or {})


def holds_gpu(pod: Pod, resources: tuple[ResourceRule, ...]) -> bool:
    """Whether any container of `pod` names a GPU resource; cheaper than counting."""
    return any(resource_rule(name, resources) for name in _names(pod))


def _names(pod: Pod) -> Iterable[str]:
    for container in _all_containers(pod):
        if container.resources is not None:
            yield from container.resources.requests or ()
            yield from container.resources.limits or ()
