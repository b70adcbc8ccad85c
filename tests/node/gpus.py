"""The GPUs of a node as the scripted driver shows them: each is busy in its own way, and may change meanwhile."""

import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.node.node import Node
from tests.nvml.script import Gpu, Mig, Script, integral
from tests.nvml.statement import US, Curve, Seconds

A100 = Gpu(uuid="", model="NVIDIA A100-SXM4-80GB", architecture=8, gpm=False, memory_mib=81920)
H100 = Gpu(uuid="", samples=False)
STEP_S = 5
BEGIN_S, END_S = -60, 1800
SOON = Fraction(1, 2)
"""From then on, in seconds, the future may be written anew: before it a reader may look at any time."""


class ScriptedGpus:
    """Those of `node`, in its order, in a script at `path`.

    Whole GPUs tell samples but for one, which counts its activity, and one that tells its present utilisation alone,
    and is always as busy; the last GPU is cut.
    """

    def __init__(self, path: Path, node: Node) -> None:
        self.path = path
        self.origin_us = time.time_ns() // 1000
        gpus = [self._gpu(number, uuid) for number, uuid in enumerate(node.gpus)]
        gpus[6] = replace(gpus[6], model=H100.model, architecture=9, gpm=True, samples=False)
        gpus[7] = replace(gpus[7], samples=False, curve=[(BEGIN_S, 77)])
        mig = [
            Mig(uuid=uuid, index=number, gi=7 + number, curve=steps(20 + 45 * number))
            for number, uuid in enumerate(node.mig_devices)
        ]
        gpus[9] = replace(H100, uuid=gpus[9].uuid, minor=9, mig_mode=True, mig=mig)
        self.gpus = {gpu.uuid: gpu for gpu in gpus}
        self.standard = dict(self.gpus)
        self.curves: dict[str, Curve] = {}
        """By device, also of those that are gone."""
        self.write()

    def _gpu(self, number: int, uuid: str) -> Gpu:
        return replace(
            A100, uuid=uuid, minor=number, pci=f"00000000:{24 + number:02X}:00.0", curve=steps(10 + 6 * number)
        )

    @property
    def now(self) -> Fraction:
        """Seconds since the origin."""
        return Fraction(self.now_us - self.origin_us, US)

    @property
    def now_us(self) -> int:
        """Since the epoch."""
        return time.time_ns() // 1000

    def change(self, uuid: str, **fields: Any) -> None:  # noqa: ANN401 - as Gpu has them
        """From the next call on the GPU is like this; a curve's past must stay what it was."""
        self.gpus[uuid] = replace(self.gpus[uuid], **fields)
        self.write()

    def go_on(self, uuid: str, *points: tuple[Seconds, int]) -> int:
        """Soon the GPU is busy otherwise; `points` are seconds from then, the first one 0, and percent.

        Returns that instant, in µs since the epoch.
        """
        soon = self.now + SOON
        past = [point for point in self.curves[uuid] if point[0] < soon]
        self.change(uuid, curve=[*past, *((soon + Fraction(after), percent) for after, percent in points)])
        return self.origin_us + round(soon * US)

    def restore(self) -> None:
        """Soon all are again as they would be if nothing had been changed."""
        soon = self.now + SOON
        for uuid, gpu in self.standard.items():
            past = [point for point in self.curves[uuid] if point[0] < soon]
            level = [(soon, percent) for at, percent in gpu.curve if at <= soon][-1:]
            self.gpus[uuid] = replace(gpu, curve=[*past, *level, *(point for point in gpu.curve if point[0] > soon)])
        self.write()

    def percent_us(self, device: str, from_us: int, to_us: int) -> Fraction:
        """The integral of a device's utilisation between two instants since the epoch, in percent times µs."""
        return integral(self.curves[device], from_us - self.origin_us, to_us - self.origin_us)

    def write(self) -> None:
        for gpu in self.gpus.values():
            self.curves |= {gpu.uuid: gpu.curve} | {mig.uuid: mig.curve for mig in gpu.mig}
        Script(origin_us=self.origin_us, gpus=[*self.gpus.values()]).write(self.path)


def steps(low: int) -> Sequence[tuple[Seconds, int]]:
    """Up and down in turn: on average `low` and 15 percent."""
    return [(at, low + 30 * (at // STEP_S % 2)) for at in range(BEGIN_S, END_S, STEP_S)]
