"""Kills a process repeatedly at random ages, and restarts it as a kubelet restarts a container."""

import asyncio
from dataclasses import dataclass
from enum import Enum
from random import Random

from tests.behaviour.product import Product
from tests.behaviour.recorder import until

POLL_S = 0.05
UP_WITHIN_S = 25.0


class Age(Enum):
    """Range of the age in seconds at which the process is killed, since launch (`STARTING`) or since ready."""

    STARTING = (0.0, 1.2)
    YOUNG = (0.0, 2.0)
    GROWN = (1.5, 3.5)
    OLD = (8.0, 12.0)


AGES, WEIGHTS = tuple(Age), (30, 40, 25, 5)
PAUSES_S = ((0.0, 0.0), (0.2, 2.0), (2.0, 5.0))
PAUSE_WEIGHTS = (45, 35, 20)


@dataclass
class Death:
    """An exit that the killer did not cause."""

    after_kills: int
    message: str


class Killer:
    """Kills `product` until `kills` running processes were killed, then leaves it running."""

    def __init__(self, product: Product, *, kills: int, seed: int) -> None:
        self.product = product
        self.kills = kills
        self.hits = 0
        self.launches = 0
        self.deaths: list[Death] = []
        self._random = Random(f"{seed} killer")

    async def run(self) -> None:
        while self.hits < self.kills:
            await self._run_once()
            self.hits += await self.product.kill()
            await asyncio.sleep(self._random.uniform(*self._random.choices(PAUSES_S, PAUSE_WEIGHTS)[0]))
        await self._launch()

    async def reached(self, hits: int) -> None:
        """Wait until `hits` processes were killed."""
        await until(lambda: self.hits >= hits, within=3600)

    async def revive(self) -> None:
        """Restart the process until it is ready."""
        while not await self._comes_up():
            await self._launch()

    async def _run_once(self) -> None:
        """Launch the process and wait until it is due to be killed."""
        await self._launch()
        [age] = self._random.choices(AGES, WEIGHTS)
        delay_s = self._random.uniform(*age.value)
        if age is not Age.STARTING:
            await self._comes_up()
        await asyncio.sleep(delay_s)
        if not self.product.is_alive:
            self._record_exit()

    async def _launch(self) -> None:
        self.launches += 1
        await self.product.launch()

    async def _comes_up(self) -> bool:
        """Whether the process becomes ready before it exits or times out; without an API server it may do neither."""
        deadline = asyncio.get_running_loop().time() + UP_WITHIN_S
        while self.product.is_alive and asyncio.get_running_loop().time() < deadline:
            if await self.product.is_ready():
                return True
            await asyncio.sleep(POLL_S)
        return False

    def _record_exit(self) -> None:
        message = self.product.log.read_text().strip().splitlines()[-1:]
        self.deaths.append(Death(self.hits, "".join(message)))
