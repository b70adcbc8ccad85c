"""How many devices of which resource a pod effectively asks for."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from gputally.errors import MalformedObject
from gputally.model.kube import Container, Pod
from gputally.model.rules import Rules
from gputally.shares.scheme import Amounts
from gputally.shares.schemes import SCHEMES, Units, describes, rule_of

_SUFFIXES = {"": 1, "k": 10**3} | {
    letter + binary: (1024 if binary else 1000) ** power
    for power, letter in enumerate("KMGTPE", start=1)
    for binary in ("", "i")
}
_QUANTITY = re.compile(r"([0-9]+)(?:(k|[MGTPE]|[KMGTPE]i)|[eE]([0-9]{1,2}))?")
Quantities = Mapping[str, str | int]
_MOST = 10**9
"""No node has so many; anybody may ask for more, and a ledger's numbers have 64 bits."""
_MOST_NAMES = 64
"""No node offers so many kinds of GPUs, so no pod that names more of them ever runs."""


@lru_cache(maxsize=4096)
def requested(quantity: str | int) -> int:
    """Devices of an extended resource's quantity, which the API server holds to whole numbers; 10^9 of any more.

    Raises: ValueError for a fraction, and for anything else that is no whole number.
    Source: k8s.io/apimachinery pkg/api/resource/suffix.go.
    """
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        raise ValueError(f"{quantity!r} is not a whole number of devices")
    amount: int = int(match[1]) * _SUFFIXES[match[2] or ""] * 10 ** int(match[3] or 0)
    return min(amount, _MOST)


def count(quantity: str | int) -> int:
    """Devices of such a quantity that a node offers. Raises: ValueError for what no node has, too."""
    amount = requested(quantity)
    if amount >= _MOST:
        raise ValueError(f"{quantity!r} is more devices than a node has")
    return amount


@lru_cache(maxsize=4096)
def limited(units: Units, offered: Units | None, rules: Rules) -> Units | None:
    """`units` held to what a node offered; None if they are no more, or if nobody knows what it offered.

    What only describes devices is not offered, and limited by their number.
    """
    if offered is None:
        return None
    most = dict(offered)
    held = tuple((name, amount if describes(name, rules) else min(amount, most.get(name, 0))) for name, amount in units)
    return None if held == units else held


def offered_units(quantities: Quantities | None, rules: Rules) -> dict[str, int]:
    """Devices by resource in a node's capacity or allocatable. Raises: ValueError for a broken quantity."""
    return {name: count(amount) for name, amount in (quantities or {}).items() if rule_of(name, rules)}


def effective_units(pod: Pod, rules: Rules) -> Units:
    """Devices by resource name the scheduler sets aside for `pod`; empty for a pod without GPUs.

    No pod asks for more than 10^9 devices, nor for more than 64 kinds. Init containers run one after the other before
    the containers; sidecars (init containers with restartPolicy Always) run beside everything that comes after them.

    Raises: MalformedObject for a quantity that is no whole number.
    Source: k8s.io/component-helpers resource/helpers.go, PodRequests.
    """
    init_containers = pod.spec.init_containers or ()
    try:
        asked = [_gpus(container, rules) for container in (*init_containers, *pod.spec.containers)]
        for scheme in SCHEMES:
            asked = scheme.asked(pod, asked, rules)
    except ValueError as error:
        raise MalformedObject(pod.metadata.uid, str(error)) from None
    sidecars, peak = _before(zip(init_containers, asked, strict=False))
    for amounts in asked[len(init_containers) :]:
        _add(sidecars, amounts)
    for name, amount in sidecars.items():
        peak[name] = max(amount, peak.get(name, 0))
    return tuple(sorted([(name, min(amount, _MOST)) for name, amount in peak.items() if amount])[:_MOST_NAMES])


def _before(init_containers: Iterable[tuple[Container, Amounts]]) -> tuple[Amounts, Amounts]:
    """Of the init containers, what the sidecars have together, and the most there is at any time."""
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


def _gpus(container: Container, rules: Rules) -> Amounts:
    """Requests equal limits for extended resources; a limit alone is a request too."""
    asked = container.resources
    if asked is None:
        return {}
    amounts = (asked.limits or {}) | (asked.requests or {})
    return {name: requested(amount) for name, amount in amounts.items() if rule_of(name, rules)}


def holds_gpu(pod: Pod, rules: Rules) -> bool:
    """Whether any container of `pod` names a GPU resource, or there may be another sign; cheaper than counting."""
    for container in (*pod.spec.containers, *(pod.spec.init_containers or ())):
        if asked := container.resources:
            for name in (*(asked.limits or ()), *(asked.requests or ())):
                if rule_of(name, rules):
                    return True
    return any(scheme.may_ask(pod, rules) for scheme in SCHEMES)
