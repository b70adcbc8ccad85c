"""The scripted GPUs of two nodes, and how long they were busy."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.behaviour.recorder import Form, span
from tests.nvml.script import Gpu, Process, Script, Throttle, Xid, integral
from tests.nvml.statement import US

HEAT: Final = 269
"""The NVML field that counts the time of thermal throttling."""
CONTAINED_ECC: Final = 94
BEYOND_ALL_PIDS: Final = 4_200_000
"""A PID that no process has, so its pod is unknown, as on a node without hostPID."""
_H100: Final = Gpu(uuid="", used_mib=30_000, energy_since=-3600, shares=[(2, 90), (3, 40), (5, 25), (10, 60)])
WELL: Final = replace(
    _H100,
    uuid="GPU-well",
    curve=[(-60, 40), (45, 85)],
    temperature=61,
    processes=[Process(pid=BEYOND_ALL_PIDS, memory_mib=29_000)],
)
SICK: Final = replace(
    _H100,
    uuid="GPU-sick",
    curve=[(-60, 90)],
    temperature=88,
    throttles=[Throttle(field=HEAT, start=20)],
    xids=[Xid(at=30, code=CONTAINED_ECC)],
    processes=[Process(pid=BEYOND_ALL_PIDS + 1, memory_mib=29_000)],
)


class Use(NamedTuple):
    """Seconds in which pods held a GPU, and busy seconds in that time."""

    held: float
    busy: float


@dataclass
class ScriptedGpu:
    """One GPU in a separate script at `path`; times in the script are relative to now."""

    path: Path
    gpu: Gpu
    origin_us: int = field(default_factory=lambda: time.time_ns() // 1000)

    def __post_init__(self) -> None:
        self.write()

    def write(self) -> None:
        Script(origin_us=self.origin_us, gpus=[self.gpu]).write(self.path)

    def change(self, **fields: Any) -> None:  # noqa: ANN401 - any field of Gpu
        """Change the GPU from the next driver call on."""
        self.gpu = replace(self.gpu, **fields)
        self.write()

    def busy_seconds(self, from_us: int, to_us: int) -> float:
        """The integral of its utilisation between two instants since the epoch."""
        percent_us = integral(self.gpu.curve, from_us - self.origin_us, to_us - self.origin_us)
        return float(percent_us / 100 / Fraction(US))

    def use(self, pods: Iterable[list[Form]], *, until_us: int) -> Use:
        """The use by `pods` of its node."""
        spans = [(start, min(end, until_us)) for start, end in map(span, pods) if start < until_us]
        held = sum(end - start for start, end in spans) / US
        return Use(held=held, busy=sum(self.busy_seconds(*each) for each in spans))
