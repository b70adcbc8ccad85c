"""A cluster with the product on it and Prometheus beside it: all of it real but the nodes and their GPUs."""

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
from tests.behaviour.product import Product
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
"""For how long a new series is 0, which at least one scrape sees."""
KNOWN_SCRAPES = 6 + ZERO_S // SCRAPE_S
HELD = "sum(gputally_allocated_gpu_seconds_total)"


@dataclass
class Scene:
    """The cluster is empty at first, and nothing of the product runs but the agents; see `open_books`."""

    stage: Stage
    plane: ControlPlane
    scratch: Path
    prometheus: PrometheusServer
    measured: Sequence[Measured]
    _lives: Iterator[int] = field(default_factory=lambda: count(1))

    async def open_books(self) -> None:
        """Start the aggregator, and scrape it and the agents."""
        await self.stage.product.start()
        await self.scrape()

    async def succeed(self) -> None:
        """Kill the aggregator and start another on the same ledger, at another address, as for a pod replaced."""
        await self.stage.product.kill()
        home = self.scratch / f"life-{next(self._lives)}"
        home.mkdir()
        books = self.stage.product.ledger.parent
        self.stage.product = product(home, self.plane, self.measured, books=books)
        await self.stage.product.start()

    async def scrape(self) -> None:
        """Have Prometheus scrape the aggregator where it is now, under an `instance` that stays."""
        configuration = self.prometheus.configuration
        jobs = [targets.aggregator(self.stage.product.url), *self.agents]
        await self.prometheus.reload(replace(configuration, scrape_configs=jobs))
        await self.visible()

    def by_address(self) -> Configuration:
        """The same for a Prometheus whose owner ignored the advice."""
        jobs = [targets.aggregator_by_address(self.stage.product.url), *self.agents]
        return Configuration(scrape_configs=jobs, scrape_interval=f"{SCRAPE_S}s")

    @property
    def agents(self) -> list[Json]:
        return [targets.agents(self.measured)] if self.measured else []

    async def visible(self, server: PrometheusServer | None = None) -> int:
        """Wait until Prometheus shows what is the case now; the whole second then, which is before all that follows."""
        now, number = time.time(), 1 + len(self.measured)

        def is_new(answer: Answer) -> bool:  # beside what is new an old target may be in sight
            return sum(each.last > now for each in answer.series) == number

        answer = await (server or self.prometheus).until(SCRAPED, is_new)
        second = math.ceil(max(each.last for each in answer.series))
        await asyncio.sleep(max(0, second - time.time()))
        return second

    async def steady(self) -> int:
        """The same some scrapes later, when a mean rate is known of each series, also of those that have just begun."""
        await self.prometheus.until(YOUNGEST, lambda answer: answer.series and answer.value >= KNOWN_SCRAPES)
        return await self.visible()

    async def held(self, gpu_seconds: float) -> None:
        """Wait until Prometheus shows that pods held GPUs for so long, in all, from now on."""
        answer = await self.prometheus.query(HELD)
        goal = (answer.value if answer.series else 0) + gpu_seconds
        await self.prometheus.until(HELD, lambda answer: answer.series and answer.value >= goal, within=120)


@asynccontextmanager
async def opened(
    plane: ControlPlane, scratch: Path, prometheus: PrometheusServer, *, gpus: Mapping[str, Gpu] | None = None
) -> AsyncIterator[Scene]:
    """Nodes that `gpus` names get an agent. In the end the cluster is empty again and Prometheus has nothing to do."""
    async with Api(plane.url, plane.token("admin"), plane.ca_file) as api:
        await grant_documented_rights(api)
        async with Recorder(api) as recorder, agents_on(gpus or {}, api, scratch) as measured:
            stage = Stage(api=api, recorder=recorder, product=product(scratch, plane, measured))
            scene = Scene(stage, plane, scratch, prometheus, measured)
            try:
                yield scene
                await stage.clear()
                await recorder.complete()
                await stage.product.stop()
            finally:
                await stage.product.kill()


def product(scratch: Path, plane: ControlPlane, measured: Sequence[Measured], *, books: Path | None = None) -> Product:
    """An aggregator that asks these agents every second."""
    urls = ",".join(f"{each.node}={each.url}" for each in measured)
    environment = {"GPUTALLY_AGENTS_URLS": urls, "GPUTALLY_AGENTS_INTERVAL": "1"}
    kubeconfig = plane.kubeconfig("gputally")
    return Product(scratch, kubeconfig, books=books, environment=environment, zero_s=ZERO_S)
