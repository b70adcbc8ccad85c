"""A simulated cluster with a busy scenario, and files that lead an aggregator to it."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gputally.aggregator.settings import Settings
from gputally_sim.cluster import SimCluster
from tests.fakes.kubeconfigs import kubeconfig

NOON_US = 1_780_920_000_000_000
"""2026-06-08 12:00 UTC, a Monday."""


@pytest.fixture
async def cluster() -> AsyncIterator[SimCluster]:
    async with SimCluster(seed=1, speed=60, start_us=NOON_US) as cluster:
        cluster.run_scenario("s1")
        yield cluster


@pytest.fixture
def kubeconfig_file(tmp_path: Path, cluster: SimCluster) -> str:
    return kubeconfig(tmp_path / "kube", cluster.url, {"token": "any"})


@pytest.fixture
def port() -> int:
    """Free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found: int = listener.getsockname()[1]
    return found


@pytest.fixture
def settings(tmp_path: Path, kubeconfig_file: str) -> Settings:
    return Settings(
        config=None,
        prices=None,
        ledger=str(tmp_path / "ledger.db"),
        zero_s=0,
        kubeconfig=kubeconfig_file,
        addresses=("127.0.0.1:0",),
    )
