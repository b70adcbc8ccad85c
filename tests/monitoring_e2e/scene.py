"""A cluster with the product and Prometheus; everything is real except the nodes and their GPUs."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from hack.prometheus import Answer
from tests.behaviour.conftest import grant_documented_rights
from tests.behaviour.product import CONFIGURATION, Product
from tests.behaviour.recorder import Recorder
from tests.behaviour.stage import Stage
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import Json
from tests.monitoring_e2e import targets
from tests.monitoring_e2e.agents import Measured, agents_on
from tests.monitoring_e2e.day import SCRAPE_S
from tests.nvml.script import Gpu
from tests.prometheus.server import Configuration, PrometheusServer

SCRAPED = "timestamp(up) and up == 1"
YOUNGEST = "min(count_over_time(gputally_allocated_gpu_seconds_total[1m]))"
ZERO_S = 2 * SCRAPE_S
"""How long a new series is 0, so that at least one scrape sees it."""
KNOWN_SCRAPES = 6 + ZERO_S // SCRAPE_S
ALLOCATED = "sum(gputally_allocated_gpu_seconds_total)"


@dataclass
class Scene:
    """Starts with an empty cluster and only the agents running; see `start_accounting`."""

    stage: Stage
    plane: ControlPlane
    scratch: Path
    prometheus: PrometheusServer
    measured: Sequence[Measured]
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    async def start_accounting(self) -> None:
        """Start the aggregator, and scrape it and the agents."""
        await self.stage.product.start()
        await self.scrape()

    async def succeed(self) -> None:
        """Replace the aggregator: kill it and start another on the same ledger, at another address."""
        await self.stage.product.kill()
        home = self.scratch / f"aggregator-{next(self._numbers)}"
        home.mkdir()
        folder = self.stage.product.ledger.parent
        self.stage.product = product(home, self.plane, self.measured, ledger_folder=folder)
        await self.stage.product.start()

    async def scrape(self) -> None:
        """Make Prometheus scrape the aggregator at its current address, under a stable `instance`."""
        configuration = self.prometheus.configuration
        url = self.stage.product.url
        jobs = [targets.aggregator(url), targets.pods(url), *self.agents]
        await self.prometheus.reload(replace(configuration, scrape_configs=jobs))
        await self.visible()

    def by_address(self) -> Configuration:
        """The configuration without the recommended stable `instance`."""
        url = self.stage.product.url
        jobs = [targets.aggregator_by_address(url), targets.pods(url), *self.agents]
        return Configuration(scrape_configs=jobs, scrape_interval=f"{SCRAPE_S}s")

    @property
    def agents(self) -> list[Json]:
        return [targets.agents(self.measured)] if self.measured else []

    async def visible(self, server: PrometheusServer | None = None) -> int:
        """Wait until Prometheus shows the current state; returns a whole second between that and later changes."""
        now, number = time.time(), 2 + len(self.measured)

        def is_new(answer: Answer) -> bool:  # an old target may still be visible
            return sum(each.last > now for each in answer.series) == number

        answer = await (server or self.prometheus).until(SCRAPED, is_new)
        second = math.ceil(max(each.last for each in answer.series))
        await asyncio.sleep(max(0, second - time.time()))
        return second

    async def steady(self) -> int:
        """Like `visible`, some scrapes later, when every series, also a new one, has a good mean rate."""
        await self.prometheus.until(YOUNGEST, lambda answer: answer.series and answer.value >= KNOWN_SCRAPES)
        return await self.visible()

    async def held(self, gpu_seconds: float) -> None:
        """Wait until Prometheus shows this many more allocated GPU-seconds, in total, from now on."""
        answer = await self.prometheus.query(ALLOCATED)
        goal = (answer.value if answer.series else 0) + gpu_seconds
        await self.prometheus.until(ALLOCATED, lambda answer: answer.series and answer.value >= goal, within=120)


@asynccontextmanager
async def opened(
    plane: ControlPlane,
    scratch: Path,
    prometheus: PrometheusServer,
    *,
    gpus: Mapping[str, Gpu] | None = None,
    configuration: str = CONFIGURATION,
) -> AsyncIterator[Scene]:
    """A scene with an agent on each node in `gpus`. On exit the cluster is empty again."""
    async with Api(plane.url, plane.token("admin"), plane.ca_file) as api:
        await grant_documented_rights(api)
        async with Recorder(api) as recorder, agents_on(gpus or {}, api, scratch) as measured:
            own = product(scratch, plane, measured, configuration=configuration)
            stage = Stage(api=api, recorder=recorder, product=own)
            scene = Scene(stage, plane, scratch, prometheus, measured)
            try:
                yield scene
                await stage.clear()
                await recorder.complete()
                await stage.product.stop()
            finally:
                await stage.product.kill()


def product(
    scratch: Path,
    plane: ControlPlane,
    measured: Sequence[Measured],
    *,
    ledger_folder: Path | None = None,
    configuration: str = CONFIGURATION,
) -> Product:
    """An aggregator that pulls these agents every second."""
    urls = ",".join(f"{each.node}={each.url}" for each in measured)
    environment = {"GPUTALLY_AGENTS_URLS": urls, "GPUTALLY_AGENTS_INTERVAL": "1"}
    kubeconfig = plane.kubeconfig("gputally")
    return Product(
        scratch,
        kubeconfig,
        ledger_folder=ledger_folder,
        environment=environment,
        configuration=configuration,
        zero_s=ZERO_S,
    )
