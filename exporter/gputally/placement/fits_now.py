"""What pod sizes fit now."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Final

from gputally.model.needs import Amounts, Place
from gputally.model.pod_sizes import SIZES, Capacity, Stranded
from gputally.model.quantities import CPU, MEMORY, PODS
from gputally.model.rules import Rules
from gputally.placement.fit import copies
from gputally.placement.node_room import NodeRoom
from gputally.placement.room import Room
from gputally.shares.schemes import describes, rule_of

LEAST_PER_GPU: Final[Amounts] = ((CPU, 1000), (MEMORY, 2**30))
"""What a pod needs for each GPU at least; a GPU beside less is of no use."""
_SCARCE: Final = {CPU: Stranded.CPU, MEMORY: Stranded.MEMORY, PODS: Stranded.PODS}
_OF_NODES: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Begin the keys of taints that say what is wrong with a node. Source: k8s.io/api core/v1/well_known_taints.go."""
_PREFERENCE: Final = "PreferNoSchedule"
_OF_AUTOSCALERS: Final = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted")
Labels = tuple[str, ...]
Size = tuple[str, str, int]
"""Pods on nodes of a GPU model, "" for any, have so many units of a resource."""
_MOST_BITS: Final = 4096
"""Units of which it is computed exactly how many pods could have at once; no node has as many GPUs."""


def fits_now(
    room: Room,
    labels_of: Callable[[Place], Labels],
    rules: Rules,
    *,
    sizes: Collection[Size] = (),
    per_gpu: Amounts = LEAST_PER_GPU,
) -> dict[Labels, Capacity]:
    """What fits on the nodes with equal labels, such as the GPU model and the pool; `sizes` are those of known pods."""
    found: dict[Labels, list[Capacity]] = {}
    for node in room:
        if (place := node.place) is None:
            continue
        model = place.asset.gpu_model if place.asset else ""
        for gpu in _gpus_of(place, rules):
            own = [units for of_model, resource, units in sizes if resource == gpu and of_model in (model, "")]
            of_gpu = capacity_of(node, gpu=gpu, per_gpu=per_gpu, sizes=own)
            found.setdefault(labels_of(place), []).append(of_gpu)
    return {labels: _together(each) for labels, each in found.items()}


def capacity_of(node: NodeRoom, *, gpu: str, per_gpu: Amounts = LEAST_PER_GPU, sizes: Collection[int] = ()) -> Capacity:
    """How many pods of each size fit, by GPUs of the resource `gpu` and `per_gpu` of other resources for each.

    Pods tolerate the node's taints, which reserve it for pods with GPUs, but no cordon, and no taint of a node that is
    not ready or is being removed. Pods that are nominated to the node have not taken anything yet. `sizes` are the GPUs
    of pods that could use the node; nothing is a fragment while none is known.
    """
    free = max(node.free.get(gpu, 0), 0)
    if why := _closed(node.place):
        return Capacity(free=free, stranded=((why, free),) if free else ())
    fits = tuple([copies(_sized(size, gpu, per_gpu), node.free) for size in SIZES])
    stranded = {
        _scarcest(node, gpu, per_gpu): free - fits[0],
        Stranded.FRAGMENT: fits[0] - most_used(fits[0], sizes) if sizes else 0,
    }
    return Capacity(fits=fits, free=free, stranded=tuple([(why, count) for why, count in stranded.items() if count]))


def most_used(free: int, sizes: Collection[int]) -> int:
    """The most of so many free GPUs that pods of these sizes could have at once."""
    if free > _MOST_BITS:
        return free - free % min(sizes)
    reachable, all_free = 1, (2 << free) - 1  # bit n: n GPUs can be had
    for size in sizes:
        step = size
        while 0 < step <= free:
            reachable |= (reachable << step) & all_free
            step *= 2
    return reachable.bit_length() - 1


def _closed(place: Place | None) -> Stranded | None:
    """Why the node accepts no further pods, if it does not."""
    if place is None or place.is_cordoned:
        return Stranded.CORDON
    keys = [each.key for each in place.taints if each.effect != _PREFERENCE]
    is_out = any(key.startswith(_OF_NODES) or key in _OF_AUTOSCALERS for key in keys)
    return Stranded.NOT_READY if is_out else None


def _sized(size: int, gpu: str, per_gpu: Amounts) -> Amounts:
    return ((gpu, size), (PODS, 1), *((resource, size * amount) for resource, amount in per_gpu))


def _scarcest(node: NodeRoom, gpu: str, per_gpu: Amounts) -> Stranded:
    """The resource that allows the fewest pods of one GPU."""
    rest = [each for each in _sized(1, gpu, per_gpu) if each[0] in _SCARCE]
    return _SCARCE[min(rest, key=lambda each: node.free.get(each[0], 0) // each[1])[0]]


def _gpus_of(place: Place, rules: Rules) -> Iterator[str]:
    return (name for name, _ in place.offered if rule_of(name, rules) and not describes(name, rules))


def _together(several: list[Capacity]) -> Capacity:
    stranded = Counter[Stranded]()
    for each in several:
        stranded.update(dict(each.stranded))
    return Capacity(
        fits=tuple([sum(column) for column in zip(*(each.fits for each in several), strict=True)]),
        free=sum(each.free for each in several),
        stranded=tuple(sorted(stranded.items())),
    )
