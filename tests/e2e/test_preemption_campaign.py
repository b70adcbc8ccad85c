"""Hundreds of real preemptions while the aggregator is killed again and again: each is recorded once."""

import asyncio
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.behaviour.product import Product, total
from tests.behaviour.recorder import Recorder
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import POOL, Json, conduct, gpu_node, gpu_pod, path, priority_class
from tests.cluster.objects import Items, container_state, in_phase, seconds

pytestmark = [pytest.mark.e2e, pytest.mark.campaign]

PREEMPTIONS: Final = 500
NODES, GPUS = 16, 4
WAVE: Final = 24
"""Pods of high priority in each wave, of one GPU."""
CHECKPOINT: Final = "gputally.io/last-checkpoint"
_BY: Final = re.compile(r"Preempted by pod ([0-9a-f-]{36}) on node ")


class Waves:
    """Training fills the nodes; waves of serving pods preempt it, and leave again."""

    def __init__(self, api: Api, place: str, *, seed: int) -> None:
        self.api = api
        self.place = place
        self.pods = f"/api/v1/namespaces/{place}/pods"
        self._chance = Random(seed)
        self._number = 0

    async def furnish(self) -> None:
        for tier, value in (("low", 10), ("high", 1000)):
            await self.api.create(priority_class(f"{self.place}-{tier}", value))
        for number in range(NODES):
            await self.api.create(gpu_node(f"{self.place}-{number}", gpus=GPUS, pool=self.place))

    def pod(self, name: str, tier: str) -> Json:
        self._number += 1
        return gpu_pod(
            f"{name}-{self._number}",
            self.place,
            annotations=conduct(stop_after=self._chance.choice(("", "1s"))),
            nodeSelector={POOL: self.place},
            priorityClassName=f"{self.place}-{tier}",
        )

    async def fill(self) -> None:
        """Training pods on all GPUs; every other one states a checkpoint."""
        running = in_phase(await self.items(), "Running")
        for _ in range(NODES * GPUS - len(running)):
            await self.api.create(self.pod("train", "low"))
        items = await self.api.wait_for_items(
            self.pods, lambda items: len(in_phase(items, "Running")) == NODES * GPUS, within=60
        )
        now = datetime.now(UTC).isoformat(timespec="seconds")
        for pod in items:
            if self._chance.random() < 0.5 and CHECKPOINT not in pod["metadata"].get("annotations", {}):
                await self.api.patch(of(pod, self.place), {"metadata": {"annotations": {CHECKPOINT: now}}})

    async def wave(self) -> None:
        """Serving pods preempt, run for a moment and leave."""
        serving = [await self.api.create(self.pod("serve", "high")) for _ in range(WAVE)]
        names = {pod["metadata"]["name"] for pod in serving}
        await self.api.wait_for_items(
            self.pods, lambda items: names <= {pod["metadata"]["name"] for pod in in_phase(items, "Running")}, within=60
        )
        for pod in serving:
            await self.api.delete(path(pod), grace_seconds=0)

    async def items(self) -> Items:
        found: Items = (await self.api.list(self.pods))["items"]
        return found


async def killing(product: Product, chance: Random, kills: list[int]) -> None:
    """Kill the aggregator again and again, until cancelled."""
    while True:
        await asyncio.sleep(chance.uniform(0.2, 4))
        if await product.kill():
            kills[0] += 1
        await product.launch()


async def test_every_preemption_is_recorded_once_with_its_preemptor_and_its_loss(
    control_plane: ControlPlane, api: Api, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product, waves = Product(tmp_path, control_plane.kubeconfig("admin")), Waves(api, place, seed=17)
    await waves.furnish()
    await product.start()
    try:
        recorder, by, kills = await played(product, waves)
        found = await product.query_until(
            f"SELECT victim_uid FROM disruptions WHERE victim_namespace = '{place}' AND cause = 'preemption' "
            "AND released_us NOTNULL",
            lambda rows: len(rows) >= len(recorder.victims()),
            within=60,
        )
        samples = await product.until(
            lambda samples: total(samples, "gputally_preemptions_total") >= len(recorder.victims()), within=120
        )
        named: dict[str, str] = dict(
            product.query("SELECT victim_uid, preemptor_uid FROM preemptions ORDER BY recorded_us")
        )
        lost: dict[str, str] = dict(product.query("SELECT victim_uid, gpu_time FROM lost_work"))
    finally:
        await product.kill()
    victims = recorder.victims()
    wrong = {uid: (named.get(uid), by.get(uid)) for uid in victims if uid in by and named.get(uid) != by[uid]}
    with capsys.disabled():
        sys.stdout.write(f"\n{len(victims)} preemptions, {len(by)} Events, {kills} kills\n")
    assert sorted(uid for (uid,) in found) == sorted(victims)
    assert wrong == {}
    assert total(samples, "gputally_preemptions_total") == len(victims)
    assert total(samples, "gputally_disruptions_total", cause="preemption") == len(victims)
    assert {uid: int(amount) // 10**12 for uid, amount in lost.items() if int(amount)} == losses(recorder)


async def played(product: Product, waves: Waves) -> tuple[Recorder, Mapping[str, str], int]:
    """What was recorded, the preemptors by victim, and the number of kills; the aggregator runs again in the end."""
    kills = [0]
    async with Recorder(waves.api, fieldSelector=f"metadata.namespace={waves.place}") as recorder:
        killer = asyncio.create_task(killing(product, Random(18), kills))
        while len(recorder.victims()) < PREEMPTIONS:
            await waves.fill()
            await waves.wave()
        killer.cancel()
        await asyncio.gather(killer, return_exceptions=True)
        by = await preemptors(waves.api, waves.place)
        await waves.api.delete(waves.pods, grace_seconds=0)
        await recorder.complete(within=60)
    if not product.is_alive:
        await product.launch()
    await product.ready(within=60)
    return recorder, by, kills[0]


async def preemptors(api: Api, place: str) -> dict[str, str]:
    """The UID of the preemptor by that of the victim, from the first of the scheduler's Events: there may be two."""
    events = (await api.list(f"/api/v1/namespaces/{place}/events", fieldSelector="reason=Preempted"))["items"]
    events.sort(key=lambda event: str(event["eventTime"]), reverse=True)
    named = ((event["involvedObject"]["uid"], _BY.match(event["message"])) for event in events)
    return {victim: found[1] for victim, found in named if found}


def losses(recorder: Recorder) -> Mapping[str, int]:
    """GPU-seconds from the last checkpoint, or the start, to the end of each victim; times have whole seconds."""
    found = {}
    for uid in recorder.victims():
        forms = [pod for _, pod, _ in recorder.forms[uid]]
        ends = [container_state(pod, "terminated") for pod in forms if pod["status"].get("containerStatuses")]
        if end := next(filter(None, reversed(ends)), None):
            noted = (pod["metadata"].get("annotations", {}).get(CHECKPOINT) for pod in forms)
            since = max(seconds(end["startedAt"]), *map(seconds, filter(None, noted)), 0)
            if seconds(end["finishedAt"]) > since:
                found[uid] = int(seconds(end["finishedAt"]) - since)
    return found


def of(pod: Json, place: str) -> str:
    return f"/api/v1/namespaces/{place}/pods/{pod['metadata']['name']}"
