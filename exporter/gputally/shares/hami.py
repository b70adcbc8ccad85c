"""HAMi: a pod has a part of the memory and of the cores of each of its `nvidia.com/gpu` devices.

About ten such devices represent one GPU. HAMi's device plugin registers the GPUs in an annotation of the node; its
scheduler writes the allocation of each container to an annotation of the pod.

Sources: Project-HAMi/HAMi docs/develop/protocol.md; pkg/device/devices.go, DecodeNodeDevices and DecodePodDevices.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from gputally.model.kube.pods import NO_ANNOTATIONS, Pod
from gputally.model.rules import HamiBasis, Rules
from gputally.model.units import GPU
from gputally.shares.scheme import GPUS, Amounts, Labels, ResourceAmount, Scheme

REGISTERED: Final = "hami.io/node-nvidia-register"
ALLOCATED: Final = "hami.io/vgpu-devices-allocated"
_MEMORY: Final = "nvidia.com/gpumem"
_PERCENTAGE: Final = "nvidia.com/gpumem-percentage"
_CORES: Final = "nvidia.com/gpucores"
_PER_DEVICE: Final = frozenset({_MEMORY, _PERCENTAGE, _CORES})
_DEVICES: Final = _PER_DEVICE | {GPUS}
_FIELDS: Final = (7, 9)


class _Gpu(msgspec.Struct, frozen=True):
    """A registered GPU: the number of devices that represent it, and its MiB."""

    count: int
    devmem: int


class _Registered(NamedTuple):
    """The totals of a node's GPUs."""

    gpus: int
    devices: int
    memory_mib: int


class Hami(Scheme):
    """Memory is in MiB or percent of a GPU, cores are in percent; all amounts are totals over the devices."""

    name = "hami"
    patterns = (_MEMORY, _PERCENTAGE, _CORES)
    describes = True
    adjusts = True

    def reads(self, key: str) -> bool:
        """See `Scheme.reads`."""
        return key == REGISTERED

    def labels(self, annotations: Labels) -> Labels:
        """See `Scheme.labels`: none for an invalid annotation, so that every device counts as a whole GPU."""
        if not (text := annotations.get(REGISTERED)):
            return {}
        try:
            gpus = _registered(text)
        except (ValueError, msgspec.DecodeError):
            return {}
        return {REGISTERED: f"{len(gpus)}/{sum(gpu.count for gpu in gpus)}/{sum(gpu.devmem for gpu in gpus)}"}

    def effective(self, pod: Pod, containers: list[Amounts], rules: Rules) -> list[Amounts]:
        """See `Scheme.effective`: the scheduler's allocation for a bound pod, before that its requests."""
        if not all(map(_PER_DEVICE.isdisjoint, containers)):
            containers = [_total(each) for each in containers]
        if pod.spec.node_name and (text := (pod.metadata.annotations or NO_ANNOTATIONS).get(ALLOCATED)):
            return _allocated(text, containers, len(pod.spec.init_containers or ())) or containers
        return containers

    def governs(self, requested: Sequence[ResourceAmount], node: Labels) -> bool:
        """See `Scheme.governs`: on other nodes, nothing enforces the limits of a pod."""
        return REGISTERED in node

    def quantities(self, requested: Sequence[ResourceAmount], node: Labels, rules: Rules) -> Iterator[tuple[str, int]]:
        """See `Scheme.quantities`: at most a whole GPU for each device, and at most the node's GPUs in total."""
        amounts = {each.resource: each.amount for each in requested}
        devices, node_gpus = amounts.get(GPUS, 0), _node_totals(node)
        memory = _memory(amounts, node_gpus)
        cores = GPU * amounts.get(_CORES, 0) // 100 or memory
        share = {HamiBasis.MEMORY: memory, HamiBasis.CORES: cores, HamiBasis.LARGER: max(memory, cores)}
        yield GPUS, min(share[rules.hami_basis], GPU * devices, GPU * node_gpus.gpus)

    def offers(self, offered: Sequence[ResourceAmount], node: Labels, rules: Rules) -> Iterator[tuple[str, int]]:
        """See `Scheme.offers`: the GPUs that the devices represent."""
        node_gpus = _node_totals(node)
        for each in offered:
            if each.resource == GPUS and node_gpus.devices:
                yield GPUS, GPU * each.amount * node_gpus.gpus // node_gpus.devices


def _registered(text: str) -> list[_Gpu]:
    """The GPUs in either form of the annotation. Raises: ValueError or DecodeError for any other."""
    if text.startswith("["):
        return msgspec.json.decode(text, type=list[_Gpu])
    found = [entry.split(",") for entry in text.split(":") if entry]
    if any(len(fields) not in _FIELDS for fields in found):
        raise ValueError(text)
    return [_Gpu(count=int(fields[1]), devmem=int(fields[2])) for fields in found]


def _node_totals(node: Labels) -> _Registered:
    return _Registered(*(int(part) for part in node[REGISTERED].split("/")))


def _allocated(text: str, containers: list[Amounts], inits: int) -> list[Amounts]:
    """The allocation of each container; empty if it is invalid or differs from the requested number of devices.

    The slots with devices are those of the containers that request some, in order. A container without devices has an
    empty slot, one of a device without a UUID, or none. In older versions of HAMi, the first `inits` containers, which
    initialize the pod, have no slots: then the pod has what the others were given.

    Source: Project-HAMi/HAMi pkg/device/devices.go, EncodePodSingleDevice and Resourcereqs.
    """
    try:
        slots = [slot for part in text.split(";") if (slot := list(_devices(part)))]
    except (ValueError, IndexError):
        return []
    counts = [len(slot) for slot in slots]
    for first in (0, inits) if slots else ():
        asking = [place for place in range(first, len(containers)) if containers[place].get(GPUS)]
        if counts == [containers[place][GPUS] for place in asking]:
            given = dict(zip(asking, slots, strict=True))
            return [_with(each, *given.get(place, ())) for place, each in enumerate(containers)]
    return []


def _devices(slot: str) -> Iterator[tuple[int, int]]:
    for entry in slot.split(":"):
        fields = entry.split(",")
        if fields[0]:
            yield _device(fields)


def _device(fields: Sequence[str]) -> tuple[int, int]:
    """The MiB and the percentage of the cores. Raises: ValueError or IndexError for an invalid device."""
    memory, cores = int(fields[2]), int(fields[3])
    if memory <= 0 or cores < 0:
        raise ValueError(fields)
    return memory, cores


def _with(container: Amounts, *devices: tuple[int, int]) -> Amounts:
    rest = {name: amount for name, amount in container.items() if name not in _PER_DEVICE}
    allocated = {_MEMORY: sum(memory for memory, _ in devices), _CORES: sum(cores for _, cores in devices)}
    return rest | {name: amount for name, amount in allocated.items() if amount}


def _total(container: Amounts) -> Amounts:
    """Totals over the devices of a container, which requests amounts for each; by default, all memory of each."""
    if _DEVICES.isdisjoint(container):
        return container
    devices = container.get(GPUS) or 1
    of_each = {name: container[name] for name in _PER_DEVICE if container.get(name)}
    if _MEMORY in of_each:
        of_each.pop(_PERCENTAGE, None)
    elif _PERCENTAGE not in of_each:
        of_each[_PERCENTAGE] = 100
    rest = {name: amount for name, amount in container.items() if name not in _PER_DEVICE}
    return rest | {GPUS: devices} | {name: devices * amount for name, amount in of_each.items()}


def _memory(amounts: Mapping[str, int], node_gpus: _Registered) -> int:
    """µGPU by memory; a whole GPU for each device without a requested or known amount."""
    mib, percent = amounts.get(_MEMORY, 0), amounts.get(_PERCENTAGE, 0)
    if not (mib or percent) or not node_gpus.memory_mib:
        return GPU * amounts.get(GPUS, 0)
    return GPU * mib * node_gpus.gpus // node_gpus.memory_mib + GPU * percent // 100
