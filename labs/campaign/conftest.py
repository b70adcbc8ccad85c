"""The grounds of campaigns: a simulated cluster and a real one, each with its witness."""

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
from labs.campaign.campaign import Ground
from labs.campaign.disk import Disk, mounted
from labs.campaign.supervisor import Supervisor
from labs.campaign.upheavals import of_control_plane, of_simulation
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
"""For the witness, which reads what the API server stores."""
ALL_HISTORY = "--etcd-compaction-interval=0"
REPLAYED_S, REPLAY_S = 172_800, 300


class Machine(NamedTuple):
    """What the product runs on."""

    disk: Disk | None
    clock: WallClock | None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip_without_control_plane(items)
    for item in items:  # servers are killed here, and client sockets die with them
        item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture
def sound() -> Machine:
    """Disk and clock do as they should."""
    return Machine(None, None)


@pytest.fixture
def rough(tmp_path: Path) -> Iterator[Machine]:
    """The disk can be filled, the clock can be stepped."""
    clock = WallClock(tmp_path)
    with mounted(tmp_path / "disk") as disk:
        yield Machine(disk, clock)


@pytest.fixture(params=["sim", pytest.param("real", marks=pytest.mark.e2e)])
async def ground(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ground]:
    """An empty cluster, and the product beside it on a sound machine or, in a campaign, on a rough one."""
    machine = request.getfixturevalue("rough" if request.node.get_closest_marker("campaign") else "sound")
    lay = simulated if request.param == "sim" else real
    async with lay(tmp_path, machine) as ground:
        try:
            yield ground
        finally:
            await ground.stage.product.kill()


@asynccontextmanager
async def simulated(scratch: Path, machine: Machine) -> AsyncIterator[Ground]:
    async with SimCluster(start_us=time.time_ns() // 1000) as cluster, Api(cluster.url, "any") as api:
        kubeconfig = scratch / "kubeconfig"
        kubeconfig.write_text(json.dumps(kubeconfig_for(cluster.url)))
        with store_witness(cluster.store) as witness:
            stage = Stage(api=api, recorder=witness, product=product_on(machine, scratch, kubeconfig))
            replay = part_of_trace(cluster) if machine.disk else None
            yield Ground("sim", stage, of_simulation(cluster), *machine, replay=replay)


@asynccontextmanager
async def real(scratch: Path, machine: Machine) -> AsyncIterator[Ground]:
    async with (
        ControlPlane(scratch, api_server_args=(AS_JSON, ALL_HISTORY)) as plane,
        Api(plane.url, plane.token("admin"), plane.ca_file) as api,
        EtcdWitness(plane.components["etcd"].health.removesuffix("/readyz")) as witness,
    ):
        await grant_documented_rights(api)
        stage = Stage(api=api, recorder=witness, product=product_on(machine, scratch, plane.kubeconfig("gputally")))
        yield Ground("real", stage, of_control_plane(plane), *machine, supervisor=Supervisor(plane))


def part_of_trace(cluster: SimCluster) -> Replay | None:
    """Two days of a real cluster in five minutes, where the traces are at hand."""
    path = FOLDER / "helios15k_user.csv.gz"
    if not path.exists():
        return None
    pods = (pod for pod in read_trace(path).pods if pod.end_s is not None and pod.end_s < REPLAYED_S)
    return Replay(cluster.registry, Trace(tuple(pods)).squeezed(REPLAYED_S // REPLAY_S))


def product_on(machine: Machine, scratch: Path, kubeconfig: Path) -> Product:
    books = machine.disk.folder if machine.disk else None
    return Product(scratch, kubeconfig, books=books, environment=machine.clock.environment if machine.clock else None)
