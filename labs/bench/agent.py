"""Measures the agent's CPU and memory: `python -m labs.bench.agent --minutes 10`.

The real pynvml reads a scripted NVML library, so the driver's time is excluded; the agent polls a kubelet in another
process over a real socket. Every device is allocated, Prometheus scrapes every 15 s, an aggregator pulls every 10 s.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import aiohttp

from labs.bench import machine
from labs.bench.figure import Figure
from labs.bench.results import Results
from labs.bench.subject import resident_mib
from tests.cluster.control_plane import free_ports
from tests.fakes.command import start
from tests.fakes.kubelet import pod, running
from tests.nvml.build import environment
from tests.nvml.script import Gpu, Mig, Process, Script

SCRAPE_SECONDS: Final = 15.0
PULL_SECONDS: Final = 10.0
WARM_SECONDS: Final = 30.0
SLICES_PER_GPU: Final = 7
SLICES: Final = 64


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A node: its GPUs, and its devices, each allocated to one pod."""

    name: str
    gpus: Sequence[Gpu]
    resource: str
    devices: Sequence[str]
    goal: str


def whole() -> Scene:
    """Eight GPUs with one process each."""
    gpus = [_gpu(number) for number in range(8)]
    return Scene(name="8gpus", gpus=gpus, resource="nvidia.com/gpu", devices=[gpu.uuid for gpu in gpus], goal="<= 1")


def sliced() -> Scene:
    """64 MIG slices on ten GPUs."""
    gpus = [_cut(number) for number in range(-(-SLICES // SLICES_PER_GPU))]
    devices = [mig.uuid for gpu in gpus for mig in gpu.mig]
    return Scene(name="64slices", gpus=gpus, resource="nvidia.com/mig-1g.10gb", devices=devices, goal="<= 3")


def _gpu(number: int) -> Gpu:
    process = Process(pid=100_000 + number, memory_mib=9000, curve=[(-600, 60)])
    return Gpu(
        uuid=f"GPU-{number}", minor=number, curve=[(-600, 60)], energy_since=-600, used_mib=9000, processes=[process]
    )


def _cut(number: int) -> Gpu:
    first = number * SLICES_PER_GPU
    cut = [
        Mig(uuid=f"MIG-{each}", index=each - first, gi=each - first + 1, curve=[(-600, each % 100)])
        for each in range(first, min(first + SLICES_PER_GPU, SLICES))
    ]
    return Gpu(uuid=f"GPU-{number}", minor=number, mig_mode=True, mig=cut, energy_since=-600)


async def measure(scene: Scene, *, minutes: float, folder: Path) -> Sequence[Figure]:
    """CPU in percent of a core and memory, from the first to the last minute."""
    script, [port] = folder / "nvml.script", free_ports(1)
    Script(origin_us=time.time_ns() // 1000, gpus=scene.gpus).write(script)
    flags = ("--kubelet.socket", folder / "kubelet.sock", "--web.listen-address", f"127.0.0.1:{port}")
    kubelet = get_context("spawn").Process(target=serve_kubelet, args=(folder / "kubelet.sock", scene), daemon=True)
    kubelet.start()
    process = await start(
        "agent", "--node", "bench", "--host.pod-logs", folder, *flags, environment=environment(script)
    )
    readers = [
        asyncio.create_task(ask(f"http://127.0.0.1:{port}/metrics", every=SCRAPE_SECONDS)),
        asyncio.create_task(ask(f"http://127.0.0.1:{port}/v1/usage", every=PULL_SECONDS)),
    ]
    try:
        await asyncio.sleep(WARM_SECONDS)
        return list(figures(scene, [sample async for sample in _samples(process.pid, minutes)]))
    finally:
        for reader in readers:
            reader.cancel()
        process.terminate()
        await process.communicate()
        kubelet.kill()


async def _samples(pid: int, minutes: float) -> AsyncIterator[tuple[float, float, float]]:
    """(time, CPU seconds, MiB) at the start and then every minute."""
    until = time.monotonic() + minutes * 60
    while True:
        yield time.monotonic(), cpu_seconds(pid), resident_mib(pid)
        left = until - time.monotonic()
        if left <= 0:
            return
        await asyncio.sleep(min(60, left))


def figures(scene: Scene, samples: Sequence[tuple[float, float, float]]) -> Iterator[Figure]:
    """The figures calculated from the samples."""
    (began, spent, memory), (ended, spent_later, memory_later) = samples[0], samples[-1]
    cpu = 100 * (spent_later - spent) / (ended - began)
    yield Figure(f"agent.cpu_percent@{scene.name}", cpu, "%", scene.goal)
    yield Figure(f"agent.memory_mib@{scene.name}", memory_later, "MiB", "<= 64")
    yield Figure(f"agent.memory_growth_mib@{scene.name}", memory_later - memory, "MiB")
    yield Figure(f"agent.minutes@{scene.name}", (ended - began) / 60, "min")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def ask(url: str, *, every: float) -> None:
    """Request `url` forever; ignores errors until the agent serves."""
    async with aiohttp.ClientSession() as session:
        while True:
            with suppress(aiohttp.ClientError):
                async with session.get(url) as response:
                    await response.read()
            await asyncio.sleep(every)


def serve_kubelet(path: Path, scene: Scene) -> None:
    """Run a kubelet with one pod per device, in a separate process."""

    async def serve() -> None:
        async with running(path) as kubelet:
            kubelet.pods = [
                pod(f"ml/train-{number}", {scene.resource: [device]}) for number, device in enumerate(scene.devices)
            ]
            kubelet.allocatable = {scene.resource: scene.devices}
            await asyncio.Event().wait()

    asyncio.run(serve())


def main() -> int:
    """Return 0 if both measurements succeed."""
    parser = argparse.ArgumentParser(prog="python -m labs.bench.agent", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long each is watched [default: 10]")
    parser.add_argument("--output", type=Path, default=Path("build/bench-agent.json"), metavar="FILE")
    plan = parser.parse_args()
    results = Results(plan.output)
    results.add(machine.describe())
    for scene in (whole(), sliced()):
        with results.attempt(scene.name), TemporaryDirectory(prefix="gputally-bench-") as folder:
            results.add(asyncio.run(measure(scene, minutes=plan.minutes, folder=Path(folder))))
    results.save()
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
