"""What the containers of a pod request at any time, by resource."""

from collections.abc import Iterable, Sequence

from gputally.model.kube import Container
from gputally.shares.scheme import Amounts


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
