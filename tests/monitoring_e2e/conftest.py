"""Runs each scenario once on the real control plane; the tests check the result."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.cluster.control_plane import ControlPlane
from tests.e2e.conftest import control_plane, skip_without_control_plane
from tests.monitoring_e2e import play as s1
from tests.monitoring_e2e import posture as s2
from tests.monitoring_e2e.day import Day
from tests.monitoring_e2e.gpus import SICK, WELL
from tests.monitoring_e2e.notify import ROUTES, RULES, to_receiver
from tests.monitoring_e2e.panels import Boards, boards
from tests.monitoring_e2e.scene import opened
from tests.prometheus.alertmanager import AlertmanagerServer
from tests.prometheus.receiver import receiving
from tests.prometheus.server import Configuration, PrometheusServer

__all__ = ["control_plane"]  # a fixture is found by its name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip_without_control_plane(items)


@pytest.fixture(scope="session")
def dashboards() -> Boards:
    return boards()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def day(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Day]:
    """The finished scenario S1; both Prometheus servers still run."""
    scratch = tmp_path_factory.mktemp("day")
    async with AsyncExitStack() as stack:
        receiver = await stack.enter_async_context(receiving())
        alertmanager = AlertmanagerServer(scratch, ROUTES, replacements=to_receiver(receiver))
        await stack.enter_async_context(alertmanager)
        alerting = Configuration(rule_files=sorted(RULES.glob("*.yaml")), alertmanager=alertmanager.url)
        prometheus = await stack.enter_async_context(PrometheusServer(scratch / "stable", alerting))
        by_address = await stack.enter_async_context(PrometheusServer(scratch / "by-address", Configuration()))
        async with opened(control_plane, scratch, prometheus, gpus={"node-0": WELL, "node-1": SICK}) as scene:
            played = await s1.play(scene, receiver, by_address)
        yield played


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def posture(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[s2.Posture]:
    """The finished scenario S2; Prometheus still runs."""
    scratch = tmp_path_factory.mktemp("posture")
    async with PrometheusServer(scratch / "prometheus", Configuration()) as prometheus:
        async with opened(control_plane, scratch, prometheus) as scene:
            played = await s2.play(scene)
        yield played
