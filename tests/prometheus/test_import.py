"""`gputally import` from a real Prometheus: its answers are as the scripted one gives them."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from gputally.ledger.open import reading_once
from gputally.ledger.records import AllocationRecord, Window
from tests.fakes.kube_state import TARGET, KubeState
from tests.fakes.prometheus_history import FakePrometheus, serving_history
from tests.prometheus.server import Configuration, PrometheusServer
from tests.prometheus.tools import create_blocks
from tests.unit.commands.pod_history import SCRAPES, T0, WINDOW, life, running, vanishing

pytestmark = pytest.mark.e2e


def filled() -> FakePrometheus:
    """Pods that end in every way, of two scrapers, one of which has a pause."""
    history = FakePrometheus()
    for replica, shift in (("a", 0.0), ("b", 11.5)):
        times = [at + shift for at in SCRAPES if replica == "a" or not 300 <= at % 7200 < 700]
        state = KubeState(history, times, TARGET | {"prometheus_replica": replica})
        state.node("n1", {"label_nvidia_com_gpu_product": "A100"}, gpus=64)
        for number, hour in enumerate(range(0, 20_000, 1700)):
            state.pod(vanishing(f"vanished-{number}", hour + 1600, created=hour, scheduled=hour + 3, started=hour + 9))
        state.pod(life("done", class_name="high", labels={"label_team": "vision"}))
        state.pod(life("evicted", phase="Failed", has_completion=False, ended=7220, removed=None, reason="Evicted"))
        state.pod(life("cancelled", phase="Failed", deleting=7190, removed=7270))
        state.pod(running("runs"))
        state.pod(life("sidecar", mains_ended=7200, ended=7220))
        state.node("leaves", {}, until=T0 + 10_800, created=T0 - 9, machine="m1")
        state.node("leaves", {}, since=T0 + 12_000, created=T0 + 11_990, machine="m2")
        state.pod(running("lost", node="leaves"))
        state.pod(running("later", node="leaves", created=12_100, scheduled=12_110, started=12_120))
    return history


def imported(url: str, ledger: Path) -> list[AllocationRecord]:
    """What the command writes, in a process of its own."""
    command = ["import", url, "--format", "prometheus", "--window", WINDOW, "--ledger", str(ledger)]
    done = subprocess.run([sys.executable, "-m", "gputally", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with reading_once(str(ledger)) as reader:
        return [replace(each, recorded_us=0) for each in reader.allocations(Window(0, 1 << 62))]


async def test_a_real_prometheus_and_the_scripted_one_give_the_same_allocations(tmp_path: Path) -> None:
    history = filled()
    (tmp_path / "samples").write_text(history.openmetrics())
    await asyncio.to_thread(create_blocks, tmp_path / "samples", tmp_path / "data")
    with serving_history(history) as url:
        expected = await asyncio.to_thread(imported, url, tmp_path / "expected.db")

    async with PrometheusServer(tmp_path, Configuration(), data=tmp_path / "data") as server:
        found = await asyncio.to_thread(imported, server.url, tmp_path / "found.db")

    assert found == expected
    assert len(found) == 19
    assert sum(each.gap is not None for each in found) == 15


async def test_a_limit_of_samples_divides_the_queries(tmp_path: Path) -> None:
    history = filled()
    (tmp_path / "samples").write_text(history.openmetrics())
    await asyncio.to_thread(create_blocks, tmp_path / "samples", tmp_path / "data")
    limit = ["--query.max-samples=2000"]
    async with PrometheusServer(tmp_path, Configuration(), data=tmp_path / "data", flags=limit) as server:
        found = await asyncio.to_thread(imported, server.url, tmp_path / "found.db")

    assert len(found) == 19
