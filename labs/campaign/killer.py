"""A process that is killed again and again, at any moment of its life, and started anew like a pod by its kubelet."""

import asyncio
from dataclasses import dataclass
from enum import Enum
from random import Random

from tests.behaviour.product import Product
from tests.behaviour.recorder import until

LOOK_S = 0.05
UP_WITHIN_S = 25.0


class Age(Enum):
    """At which age a life ends, in seconds; `STARTING` counts from the launch, the others from being ready."""

    STARTING = (0.0, 1.2)
    YOUNG = (0.0, 2.0)
    GROWN = (1.5, 3.5)
    OLD = (8.0, 12.0)


AGES, WEIGHTS = tuple(Age), (30, 40, 25, 5)
PAUSES_S = ((0.0, 0.0), (0.2, 2.0), (2.0, 5.0))
PAUSE_WEIGHTS = (45, 35, 20)


@dataclass
class Death:
    """A process that ended by itself."""

    after_kills: int
    words: str


class Killer:
    """Kills `product` until it has hit `kills` living processes, and leaves it running."""

    def __init__(self, product: Product, *, kills: int, seed: int) -> None:
        self.product = product
        self.kills = kills
        self.hits = 0
        self.launches = 0
        self.deaths: list[Death] = []
        self._random = Random(f"{seed} killer")

    async def run(self) -> None:
        while self.hits < self.kills:
            await self._live()
            self.hits += await self.product.kill()
            await asyncio.sleep(self._random.uniform(*self._random.choices(PAUSES_S, PAUSE_WEIGHTS)[0]))
        await self._launch()

    async def reached(self, hits: int) -> None:
        """Return once so many were killed."""
        await until(lambda: self.hits >= hits, within=3600)

    async def revive(self) -> None:
        """Make sure that a process is up and ready, however often it has to be started."""
        while not await self._comes_up():
            await self._launch()

    async def _live(self) -> None:
        """One life, up to the moment of its end."""
        await self._launch()
        [age] = self._random.choices(AGES, WEIGHTS)
        lasts_s = self._random.uniform(*age.value)
        if age is not Age.STARTING:
            await self._comes_up()
        await asyncio.sleep(lasts_s)
        if not self.product.is_alive:
            self._bury()

    async def _launch(self) -> None:
        self.launches += 1
        await self.product.launch()

    async def _comes_up(self) -> bool:
        """Whether it becomes ready before it dies; without its API server it may do neither for long."""
        patience = asyncio.get_running_loop().time() + UP_WITHIN_S
        while self.product.is_alive and asyncio.get_running_loop().time() < patience:
            if await self.product.is_ready():
                return True
            await asyncio.sleep(LOOK_S)
        return False

    def _bury(self) -> None:
        words = self.product.log.read_text().strip().splitlines()[-1:]
        self.deaths.append(Death(self.hits, "".join(words)))
