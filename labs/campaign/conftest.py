"""The environments of campaigns: a simulated and a real cluster, each with a recorder of the truth."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from gputally_sim.cluster import SimCluster
from gputally_sim.trace.replay import Replay
from gputally_sim.trace.trace import Trace, read_trace
from labs.campaign.campaign import Environment
from labs.campaign.disk import Disk, mounted
from labs.campaign.disruptions import control_plane_disruptions, simulation_disruptions
from labs.campaign.supervisor import Supervisor
from labs.campaign.wall_clock import WallClock
from labs.campaign.witness import EtcdWitness, store_witness
from tests.behaviour.conftest import grant_documented_rights, kubeconfig_for
from tests.behaviour.product import Product
from tests.behaviour.stage import Stage
from tests.behaviour.traces import FOLDER
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.e2e.conftest import skip_without_control_plane

AS_JSON = "--storage-media-type=application/json"
"""The recorder reads what the API server stores in etcd."""
ALL_HISTORY = "--etcd-compaction-interval=0"
REPLAYED_S, REPLAY_S = 172_800, 300


class Machine(NamedTuple):
    """The disk and clock of the product; None if they are not disturbed."""

    disk: Disk | None
    clock: WallClock | None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip_without_control_plane(items)
    for item in items:  # killed servers leave unclosed client sockets
        item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture
def sound() -> Machine:
    """A machine with a normal disk and clock."""
    return Machine(None, None)


@pytest.fixture
def rough(tmp_path: Path) -> Iterator[Machine]:
    """A machine with a disk that can be filled and a clock that can be stepped."""
    clock = WallClock(tmp_path)
    with mounted(tmp_path / "disk") as disk:
        yield Machine(disk, clock)


@pytest.fixture(params=["sim", pytest.param("real", marks=pytest.mark.e2e)])
async def environment(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Environment]:
    """An empty cluster and the product, on a sound machine or, for tests marked as campaign, on a rough one."""
    machine = request.getfixturevalue("rough" if request.node.get_closest_marker("campaign") else "sound")
    factory = simulated if request.param == "sim" else real
    async with factory(tmp_path, machine) as environment:
        try:
            yield environment
        finally:
            await environment.stage.product.kill()


@asynccontextmanager
async def simulated(scratch: Path, machine: Machine) -> AsyncIterator[Environment]:
    async with SimCluster(start_us=time.time_ns() // 1000) as cluster, Api(cluster.url, "any") as api:
        kubeconfig = scratch / "kubeconfig"
        kubeconfig.write_text(json.dumps(kubeconfig_for(cluster.url)))
        with store_witness(cluster.store) as witness:
            stage = Stage(api=api, recorder=witness, product=product_on(machine, scratch, kubeconfig))
            replay = part_of_trace(cluster) if machine.disk else None
            yield Environment("sim", stage, simulation_disruptions(cluster), *machine, replay=replay)


@asynccontextmanager
async def real(scratch: Path, machine: Machine) -> AsyncIterator[Environment]:
    async with (
        ControlPlane(scratch, api_server_args=(AS_JSON, ALL_HISTORY)) as plane,
        Api(plane.url, plane.token("admin"), plane.ca_file) as api,
        EtcdWitness(plane.components["etcd"].health.removesuffix("/readyz")) as witness,
    ):
        await grant_documented_rights(api)
        stage = Stage(api=api, recorder=witness, product=product_on(machine, scratch, plane.kubeconfig("gputally")))
        yield Environment("real", stage, control_plane_disruptions(plane), *machine, supervisor=Supervisor(plane))


def part_of_trace(cluster: SimCluster) -> Replay | None:
    """Two days of a real cluster in five minutes, if the traces are available."""
    path = FOLDER / "helios15k_user.csv.gz"
    if not path.exists():
        return None
    pods = (pod for pod in read_trace(path).pods if pod.end_s is not None and pod.end_s < REPLAYED_S)
    return Replay(cluster.registry, Trace(tuple(pods)).squeezed(REPLAYED_S // REPLAY_S))


def product_on(machine: Machine, scratch: Path, kubeconfig: Path) -> Product:
    ledger_folder = machine.disk.folder if machine.disk else None
    return Product(
        scratch,
        kubeconfig,
        ledger_folder=ledger_folder,
        environment=machine.clock.environment if machine.clock else None,
    )
