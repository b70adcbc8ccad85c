"""HAMi: a pod has some of the memory and of the cores of each of its `nvidia.com/gpu`, which many others have, too.

Such a device is one of some ten that stand for one GPU. HAMi's device plugin registers the GPUs in an annotation of the
node, its scheduler says in one of the pod what each container got.

Sources: Project-HAMi/HAMi docs/develop/protocol.md; pkg/device/devices.go, DecodeNodeDevices and DecodePodDevices.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from gputally.model.kube import Pod
from gputally.model.rules import HamiBasis, Rules
from gputally.model.units import GPU
from gputally.shares.scheme import GPUS, Amounts, Labels, ResourceAmount, Scheme

REGISTERED: Final = "hami.io/node-nvidia-register"
ALLOCATED: Final = "hami.io/vgpu-devices-allocated"
_MEMORY: Final = "nvidia.com/gpumem"
_PERCENTAGE: Final = "nvidia.com/gpumem-percentage"
_CORES: Final = "nvidia.com/gpucores"
_OF_EACH: Final = (_MEMORY, _PERCENTAGE, _CORES)
_FIELDS: Final = (7, 9)


class _Gpu(msgspec.Struct, frozen=True):
    """A registered GPU: how many devices stand for it, and its MiB."""

    count: int
    devmem: int


class _Registered(NamedTuple):
    """What the GPUs of a node come to together."""

    gpus: int
    devices: int
    memory_mib: int


class Hami(Scheme):
    """Memory is in MiB, or in hundredths of a GPU as cores are; all of it is counted for all devices together."""

    name = "hami"
    patterns = _OF_EACH
    describes = True

    def reads(self, key: str) -> bool:
        """See `Scheme.reads`."""
        return key == REGISTERED

    def labels(self, annotations: Labels) -> Labels:
        """See `Scheme.labels`: of an annotation that cannot be read nothing, which makes every device a whole GPU."""
        if not (text := annotations.get(REGISTERED)):
            return {}
        try:
            gpus = _registered(text)
        except (ValueError, msgspec.DecodeError):
            return {}
        return {REGISTERED: f"{len(gpus)}/{sum(gpu.count for gpu in gpus)}/{sum(gpu.devmem for gpu in gpus)}"}

    def asked(self, pod: Pod, containers: list[Amounts], rules: Rules) -> list[Amounts]:
        """See `Scheme.asked`: what the scheduler gave to a bound pod, before that what it asks for."""
        if any(name in each for each in containers for name in _OF_EACH):
            containers = [_together(each) for each in containers]
        if pod.spec.node_name and (text := (pod.metadata.annotations or {}).get(ALLOCATED)):
            return _given(text, containers) or containers
        return containers

    def governs(self, asked: Sequence[ResourceAmount], node: Labels) -> bool:
        """See `Scheme.governs`: elsewhere nobody holds a pod to what it says."""
        return REGISTERED in node

    def quantities(self, asked: Sequence[ResourceAmount], node: Labels, rules: Rules) -> Iterator[tuple[str, int]]:
        """See `Scheme.quantities`: at most a whole GPU for each device, and the node's GPUs in all."""
        amounts = {each.resource: each.amount for each in asked}
        devices, there = amounts.get(GPUS, 0), _marked(node)
        memory = _memory(amounts, there)
        cores = GPU * amounts.get(_CORES, 0) // 100 or memory
        share = {HamiBasis.MEMORY: memory, HamiBasis.CORES: cores, HamiBasis.LARGER: max(memory, cores)}
        yield GPUS, min(share[rules.hami_basis], GPU * devices, GPU * there.gpus)

    def offers(self, offered: Sequence[ResourceAmount], node: Labels, rules: Rules) -> Iterator[tuple[str, int]]:
        """See `Scheme.offers`: the GPUs that the devices stand for."""
        there = _marked(node)
        for each in offered:
            if each.resource == GPUS and there.devices:
                yield GPUS, GPU * each.amount * there.gpus // there.devices


def _registered(text: str) -> list[_Gpu]:
    """The GPUs in either form of the annotation. Raises: ValueError or DecodeError for any other."""
    if text.startswith("["):
        return msgspec.json.decode(text, type=list[_Gpu])
    found = [entry.split(",") for entry in text.split(":") if entry]
    if any(len(fields) not in _FIELDS for fields in found):
        raise ValueError(text)
    return [_Gpu(count=int(fields[1]), devmem=int(fields[2])) for fields in found]


def _marked(node: Labels) -> _Registered:
    return _Registered(*(int(part) for part in node[REGISTERED].split("/")))


def _given(text: str, containers: list[Amounts]) -> list[Amounts]:
    """What each container got; nothing where that cannot be read, or is of other devices than the kubelet gives."""
    try:
        devices = [[_device(entry) for entry in part.split(":") if entry] for part in text.split(";")]
    except (ValueError, IndexError):
        return []
    if [len(each) for each in devices[: len(containers)]] != [each.get(GPUS, 0) for each in containers]:
        return []
    return [_with(each, *got) for each, got in zip(containers, devices, strict=False)]


def _device(entry: str) -> tuple[int, int]:
    """Its MiB and its hundredths of the cores. Raises: ValueError or IndexError for what is no device."""
    fields = entry.split(",")
    memory, cores = int(fields[2]), int(fields[3])
    if memory <= 0 or cores < 0:
        raise ValueError(entry)
    return memory, cores


def _with(container: Amounts, *devices: tuple[int, int]) -> Amounts:
    rest = {name: amount for name, amount in container.items() if name not in _OF_EACH}
    given = {_MEMORY: sum(memory for memory, _ in devices), _CORES: sum(cores for _, cores in devices)}
    return rest | {name: amount for name, amount in given.items() if amount}


def _together(container: Amounts) -> Amounts:
    """What a container has of all its devices: it asks for so much of each, by default for all the memory of one."""
    if not any(name in container for name in (GPUS, *_OF_EACH)):
        return container
    devices = container.get(GPUS) or 1
    of_each = {name: container[name] for name in _OF_EACH if container.get(name)}
    if _MEMORY in of_each:
        of_each.pop(_PERCENTAGE, None)
    elif _PERCENTAGE not in of_each:
        of_each[_PERCENTAGE] = 100
    rest = {name: amount for name, amount in container.items() if name not in _OF_EACH}
    return rest | {GPUS: devices} | {name: devices * amount for name, amount in of_each.items()}


def _memory(amounts: Mapping[str, int], there: _Registered) -> int:
    """µGPU by memory; all of each device where nothing says how much."""
    mib, percent = amounts.get(_MEMORY, 0), amounts.get(_PERCENTAGE, 0)
    if not (mib or percent) or not there.memory_mib:
        return GPU * amounts.get(GPUS, 0)
    return GPU * mib * there.gpus // there.memory_mib + GPU * percent // 100
