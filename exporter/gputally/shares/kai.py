"""KAI-Scheduler: a pod requests a fraction of a GPU, or an amount of its memory, in an annotation.

Its containers request no GPU. For each shared GPU, a pod in KAI's own namespace reserves the GPU, so that no other pod
gets it; the reserving pod counts as having none.

Sources: kai-scheduler/KAI-Scheduler docs/gpu-sharing/README.md; pkg/common/constants/constants.go.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from gputally.model.kube.pods import NO_ANNOTATIONS, Pod, Texts
from gputally.model.rules import Rules
from gputally.model.units import GPU
from gputally.shares import gfd
from gputally.shares.scheme import GPUS, Amounts, Labels, ResourceAmount, Scheme

_FRACTION: Final = "gpu-fraction"
_MEMORY: Final = "gpu-memory"
_DEVICES: Final = "gpu-fraction-num-devices"
_RESERVATION: Final = "runai-gpu-group"
_FRACTIONAL: Final = re.compile(r"0?\.[0-9]{1,9}")
_WHOLE: Final = re.compile(r"[0-9]{1,9}")


class Kai(Scheme):
    """A request by annotation counts like a resource of that name, which no container can request.

    `gpu-fraction` is in µGPU, `gpu-memory` in MiB, as totals over the devices.
    """

    name = "kai"
    patterns = (_FRACTION, _MEMORY)
    describes = True
    adjusts = True

    def may_request(self, pod: Pod, rules: Rules) -> bool:
        """See `Scheme.may_request`: annotations are mutable, the scheduler name is not."""
        return pod.spec.scheduler_name == rules.kai.scheduler

    def effective(self, pod: Pod, containers: list[Amounts], rules: Rules) -> list[Amounts]:
        """See `Scheme.effective`."""
        if pod.metadata.namespace == rules.kai.reservations and _RESERVATION in (pod.metadata.labels or {}):
            return [{} for _ in containers]
        if not self.may_request(pod, rules) or any(containers):
            return containers
        shared = _shared(pod.metadata.annotations or NO_ANNOTATIONS)
        return [*containers[:-1], shared] if shared else containers

    def governs(self, requested: Sequence[ResourceAmount], node: Labels) -> bool:
        """See `Scheme.governs`."""
        return any(each.rule.weighing == self.name for each in requested)

    def quantities(self, requested: Sequence[ResourceAmount], node: Labels, rules: Rules) -> Iterator[tuple[str, int]]:
        """See `Scheme.quantities`: at most a whole GPU for each device, and just that if its memory is unknown."""
        amounts = {each.resource: each.amount for each in requested}
        most = GPU * amounts.get(GPUS, 0)
        memory_mib = gfd.memory_mib(node)
        by_memory = GPU * amounts.get(_MEMORY, 0) // memory_mib if memory_mib else most
        yield GPUS, min(amounts.get(_FRACTION, by_memory), most)


def _shared(annotations: Texts) -> Amounts:
    """The requests in the annotations. Raises: ValueError for an annotation that KAI's admission webhook rejects."""
    fraction, memory = annotations.get(_FRACTION), annotations.get(_MEMORY)
    if not (fraction or memory):
        return {}
    devices = _number(_DEVICES, "1" if (devices := annotations.get(_DEVICES)) is None else devices)
    if memory:
        return {GPUS: devices, _MEMORY: devices * _number(_MEMORY, memory)}
    if not fraction or not _FRACTIONAL.fullmatch(fraction):
        raise ValueError(f"{_FRACTION} {fraction!r} is not a fraction of a GPU, such as 0.5")
    return {GPUS: devices, _FRACTION: devices * int(Fraction(f"0{fraction.removeprefix('0')}") * GPU)}


def _number(name: str, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{name} {text!r} is not a whole number")
    return int(text)
