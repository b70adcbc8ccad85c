"""KAI-Scheduler: a pod asks by annotation for a fraction of a GPU, or for some of its memory.

Its containers ask for no GPU. A pod in a namespace of KAI's own reserves each GPU that is shared, so that nobody else
gets it; that one has nothing.

Sources: kai-scheduler/KAI-Scheduler docs/gpu-sharing/README.md; pkg/common/constants/constants.go.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from gputally.model.kube import Pod
from gputally.model.rules import Rules
from gputally.model.units import GPU
from gputally.shares import gfd
from gputally.shares.scheme import GPUS, Amounts, Labels, ResourceAmount, Scheme

_FRACTION: Final = "gpu-fraction"
_MEMORY: Final = "gpu-memory"
_DEVICES: Final = "gpu-fraction-num-devices"
_RESERVES: Final = "runai-gpu-group"
_FRACTIONAL: Final = re.compile(r"0?\.[0-9]{1,9}")
_WHOLE: Final = re.compile(r"[0-9]{1,9}")


class Kai(Scheme):
    """What a pod asks for by annotation is counted like a resource of that name, which no container can have.

    `gpu-fraction` is in µGPU, `gpu-memory` in MiB, of all devices together.
    """

    name = "kai"
    patterns = (_FRACTION, _MEMORY)
    describes = True

    def may_ask(self, pod: Pod, rules: Rules) -> bool:
        """See `Scheme.may_ask`: annotations can be changed, the scheduler cannot."""
        return pod.spec.scheduler_name == rules.kai.scheduler

    def asked(self, pod: Pod, containers: list[Amounts], rules: Rules) -> list[Amounts]:
        """See `Scheme.asked`."""
        if pod.metadata.namespace == rules.kai.reservations and _RESERVES in (pod.metadata.labels or {}):
            return [{} for _ in containers]
        if not self.may_ask(pod, rules) or any(containers):
            return containers
        shared = _shared(pod.metadata.annotations or {})
        return [*containers[:-1], shared] if shared else containers

    def governs(self, asked: Sequence[ResourceAmount], node: Labels) -> bool:
        """See `Scheme.governs`."""
        return any(each.rule.weighing == self.name for each in asked)

    def quantities(self, asked: Sequence[ResourceAmount], node: Labels, rules: Rules) -> Iterator[tuple[str, int]]:
        """See `Scheme.quantities`: at most a whole GPU for each device, which it is where nobody knows its memory."""
        amounts = {each.resource: each.amount for each in asked}
        most = GPU * amounts.get(GPUS, 0)
        memory_mib = gfd.memory_mib(node)
        by_memory = GPU * amounts.get(_MEMORY, 0) // memory_mib if memory_mib else most
        yield GPUS, min(amounts.get(_FRACTION, by_memory), most)


def _shared(annotations: Labels) -> Amounts:
    """Raises: ValueError for an annotation that KAI's admission refuses."""
    fraction, memory = annotations.get(_FRACTION), annotations.get(_MEMORY)
    if not (fraction or memory):
        return {}
    devices = _number(_DEVICES, annotations.get(_DEVICES, "1"))
    if memory:
        return {GPUS: devices, _MEMORY: devices * _number(_MEMORY, memory)}
    if not fraction or not _FRACTIONAL.fullmatch(fraction):
        raise ValueError(f"{_FRACTION} {fraction!r} is not a fraction of a GPU, such as 0.5")
    return {GPUS: devices, _FRACTION: devices * int(Fraction(f"0{fraction.removeprefix('0')}") * GPU)}


def _number(name: str, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{name} {text!r} is not a whole number")
    return int(text)
