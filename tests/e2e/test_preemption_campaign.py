"""Hundreds of real preemptions while the aggregator is killed again and again: each is recorded and delivered once."""

import asyncio
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.behaviour.product import CONFIGURATION, Product, total
from tests.behaviour.recorder import Recorder
from tests.cluster.api import Api, Refused
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import POOL, Json, conduct, gpu_node, gpu_pod, path, priority_class
from tests.cluster.objects import Items, container_state, in_phase, seconds
from tests.fakes.webhook import Endpoint, Receiver, often_failing

pytestmark = [pytest.mark.e2e, pytest.mark.campaign]

PREEMPTIONS: Final = 500
"""Of pods without a job, so that there are at least as many records."""
NODES, GPUS = 16, 4
GANGS, MEMBERS = 2, 4
"""Jobs of several pods among the training, whose controller replaces them."""
WAVE: Final = 24
"""Pods of high priority in each wave, of one GPU."""
JOB: Final = "batch.kubernetes.io/job-name"
TOGETHER_US: Final = 10_000_000
CHECKPOINT: Final = "gputally.io/last-checkpoint"
PAUSE: Final = "registry.k8s.io/pause:3.10"
"""The image of pods that only keep GPUs free."""
PLACEHOLDERS: Final = f'{CONFIGURATION}placeholders: {{images: ".*/pause:.*"}}\n'
_LOST: Final = (
    "SELECT victim_uid, gpu_time FROM lost_work JOIN disruptions USING (victim_uid) WHERE cause = 'preemption'"
)
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

    def pod(self, name: str, tier: str, *, job: str = "") -> Json:
        self._number += 1
        pod = gpu_pod(
            f"{name}-{self._number}",
            self.place,
            labels={JOB: job} if job else {},
            annotations=conduct(stop_after=self._chance.choice(("", "1s"))),
            nodeSelector={POOL: self.place},
            priorityClassName=f"{self.place}-{tier}",
        )
        if not job and self._chance.random() < 0.2:
            pod["spec"]["containers"][0]["image"] = PAUSE
        return pod

    async def fill(self) -> None:
        """Training pods on all GPUs, some of them of jobs, others placeholders; every other one states a checkpoint."""
        running = in_phase(await self.items(), "Running")
        jobs = [f"gang-{number}" for number in range(GANGS) for _ in range(MEMBERS)]
        for pod in running:
            if (job := job_of(pod)) in jobs:
                jobs.remove(job)
        for _ in range(NODES * GPUS - len(running)):
            await self.api.create(self.pod("train", "low", job=jobs.pop() if jobs else ""))
        items = await self.api.wait_for_items(
            self.pods, lambda items: len(in_phase(items, "Running")) == NODES * GPUS, within=60
        )
        now = datetime.now(UTC).isoformat(timespec="seconds")
        for pod in items:
            if self._chance.random() < 0.5 and CHECKPOINT not in pod["metadata"].get("annotations", {}):
                await self.api.patch(of(pod, self.place), {"metadata": {"annotations": {CHECKPOINT: now}}})

    async def wave(self) -> None:
        """Serving pods preempt, run for a moment and leave; meanwhile a pod of each job fails by itself."""
        serving = [await self.api.create(self.pod("serve", "high")) for _ in range(WAVE)]
        for pod in {job_of(pod): pod for pod in in_phase(await self.items(), "Running") if job_of(pod)}.values():
            fails = conduct(run_for="1s", exit_as="Failed")
            with suppress(Refused):  # it may have been preempted since
                await self.api.patch(of(pod, self.place), {"metadata": {"annotations": fails}})
        names = {pod["metadata"]["name"] for pod in serving}
        await self.api.wait_for_items(
            self.pods, lambda items: names <= {pod["metadata"]["name"] for pod in in_phase(items, "Running")}, within=60
        )
        for pod in serving:
            await self.api.delete(path(pod), grace_seconds=0)

    async def items(self) -> Items:
        found: Items = (await self.api.list(self.pods))["items"]
        return found


async def killing(product: Product, endpoint: Endpoint, chance: Random, kills: list[int]) -> None:
    """Kill the aggregator again and again, and every other time the receiver of its records, until cancelled.

    Every other process gets as far as it needs to be ready: on a slow machine, none would otherwise account anything.
    """
    while True:
        if chance.random() < 0.5:
            await product.ready(within=60)
        await asyncio.sleep(chance.uniform(0.2, 4))
        if is_receiver := chance.random() < 0.5:
            await endpoint.stop()
        if await product.kill():
            kills[0] += 1
        await product.launch()
        if is_receiver:
            await asyncio.sleep(chance.uniform(0.1, 1))
            await endpoint.start()


async def test_every_preemption_is_recorded_once_with_its_preemptor_and_its_loss(
    control_plane: ControlPlane, api: Api, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver = Receiver(answer=often_failing(Random(19)))
    endpoint = Endpoint(receiver, tmp_path / "webhook-url")
    environment = {"GPUTALLY_PREEMPTION_WEBHOOK_URL_FILE": str(endpoint.path)}
    product = Product(tmp_path, control_plane.kubeconfig("admin"), environment=environment, configuration=PLACEHOLDERS)
    waves = Waves(api, place, seed=17)
    await waves.furnish()
    await endpoint.start()
    await product.start()
    try:
        recorder, by, kills = await played(product, endpoint, waves)
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
        lost: dict[str, str] = dict(product.query(_LOST))
    finally:
        await asyncio.gather(product.kill(), endpoint.stop())
    victims = recorder.victims()
    wrong = {uid: (named.get(uid), by.get(uid)) for uid in victims if uid in by and named.get(uid) != by[uid]}
    with capsys.disabled():
        sys.stdout.write(f"\n{len(victims)} preemptions, {len(by)} Events, {kills} kills\n")
        sys.stdout.write(f"{len(set(receiver.ids))} records, {len(receiver.attempts)} posts\n")
    assert sorted(uid for (uid,) in found) == sorted(victims)
    assert wrong == {}
    assert total(samples, "gputally_preemptions_total") == len(victims)
    assert total(samples, "gputally_disruptions_total", cause="preemption") == len(victims)
    assert {uid: int(amount) // 10**12 for uid, amount in lost.items() if int(amount)} == losses(recorder)
    expect_records(recorder, product)
    expect_deliveries(recorder, receiver, product)


def records_of(product: Product, recorder: Recorder) -> Mapping[str, str]:
    """The record of each victim, by UID."""
    found: dict[str, str] = dict(product.query("SELECT victim_uid, job_preemption FROM disruptions"))
    return {uid: found[uid] for uid in recorder.victims()}


def expect_records(recorder: Recorder, product: Product) -> None:
    """Each victim is in one record, which is that of one job and moment; pods without a job are alone."""
    records = records_of(product, recorder)
    assert len(set(records.values())) >= PREEMPTIONS
    together: dict[str, list[str]] = {}
    for uid, record in records.items():
        together.setdefault(record, []).append(uid)
    for record, uids in together.items():
        times = [decided_us(recorder, uid) for uid in uids]
        assert record in uids
        assert len({job_of(pod_of(recorder, uid)) or uid for uid in uids}) == 1
        assert all(abs(each - decided_us(recorder, record)) <= TOGETHER_US for each in times)
    for uids in of_jobs(recorder, records).values():  # neighbours that no record may have begun between are together
        for uid, following in pairwise(sorted(uids, key=lambda each: decided_us(recorder, each))):
            if decided_us(recorder, uid) == decided_us(recorder, following):
                assert records[uid] == records[following]


def expect_deliveries(recorder: Recorder, receiver: Receiver, product: Product) -> None:
    """By its ID each record was accepted, each time with the same pods, and the ledger has that once.

    A victim that failed by itself has no loss, for which its record waits ten minutes.
    """
    names: dict[str, set[str]] = {}
    waited = {record for uid, record in records_of(product, recorder).items() if fails_itself(recorder, uid)}
    for uid, record in records_of(product, recorder).items():
        names.setdefault(record, set()).add(pod_of(recorder, uid)["metadata"]["name"])
    results = product.query("SELECT job_preemption, result FROM preemption_deliveries")
    assert sorted(results) == sorted((record, "delivered") for record in names)
    assert set(receiver.ids) == names.keys()
    for document in receiver.accepted:
        assert set(document["pods"]) == names[document["id"]]
        assert document["is_final"] or document["id"] in waited


def of_jobs(recorder: Recorder, uids: Iterable[str]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for uid in uids:
        if job := job_of(pod_of(recorder, uid)):
            found.setdefault(job, []).append(uid)
    return found


def pod_of(recorder: Recorder, uid: str) -> Json:
    return recorder.forms[uid][-1][1]


def job_of(pod: Json) -> str:
    return str(pod["metadata"].get("labels", {}).get(JOB, ""))


def decided_us(recorder: Recorder, uid: str) -> int:
    """When the scheduler marked the pod first."""
    marks = (
        seconds(each["lastTransitionTime"])
        for _, pod, _ in recorder.forms[uid]
        for each in pod["status"].get("conditions", ())
        if each["type"] == "DisruptionTarget"
    )
    return int(next(marks)) * 1_000_000


async def played(product: Product, endpoint: Endpoint, waves: Waves) -> tuple[Recorder, Mapping[str, str], int]:
    """What was recorded, the preemptors by victim, and the number of kills; the aggregator runs again in the end."""
    kills = [0]
    async with Recorder(waves.api, fieldSelector=f"metadata.namespace={waves.place}") as recorder:
        killer = asyncio.create_task(killing(product, endpoint, Random(18), kills))
        while sum(not job_of(pod_of(recorder, uid)) for uid in recorder.victims()) < PREEMPTIONS:
            await waves.fill()
            await waves.wave()
        killer.cancel()
        await asyncio.gather(killer, return_exceptions=True)
        by = await preemptors(waves.api, waves.place)
        await delivered(product, endpoint, waves)
        await waves.api.delete(waves.pods, grace_seconds=0)
        await recorder.complete(within=60)
    return recorder, by, kills[0]


async def delivered(product: Product, endpoint: Endpoint, waves: Waves) -> None:
    """Start again what was killed last, replace the pods of jobs, and wait until all records are delivered."""
    await endpoint.stop()
    await endpoint.start()
    if not product.is_alive:
        await product.launch()
    await product.ready(within=60)
    await waves.fill()
    queued, ended = "SELECT job_preemption FROM preemption_deliveries", "WHERE result NOTNULL"
    await product.query_until(queued, lambda rows: len(rows) >= PREEMPTIONS)
    await product.query_until(f"{queued} {ended}", lambda rows: len(rows) == len(product.query(queued)), within=700)


async def preemptors(api: Api, place: str) -> dict[str, str]:
    """The UID of the preemptor by that of the victim, from the first of the scheduler's Events: there may be two."""
    events = (await api.list(f"/api/v1/namespaces/{place}/events", fieldSelector="reason=Preempted"))["items"]
    events.sort(key=lambda event: str(event["eventTime"]), reverse=True)
    named = ((event["involvedObject"]["uid"], _BY.match(event["message"])) for event in events)
    return {victim: found[1] for victim, found in named if found}


def losses(recorder: Recorder) -> Mapping[str, int]:
    """GPU-seconds from the last checkpoint, or the start, to the end of each victim; times have whole seconds.

    Placeholders lose nothing, and neither does a pod that had failed by itself.
    """
    found = {}
    for uid in recorder.victims():
        forms = [pod for _, pod, _ in recorder.forms[uid]]
        if forms[0]["spec"]["containers"][0]["image"] == PAUSE or fails_itself(recorder, uid):
            continue
        ends = [container_state(pod, "terminated") for pod in forms if pod["status"].get("containerStatuses")]
        if end := next(filter(None, reversed(ends)), None):
            noted = (pod["metadata"].get("annotations", {}).get(CHECKPOINT) for pod in forms)
            since = max(seconds(end["startedAt"]), *map(seconds, filter(None, noted)), 0)
            if seconds(end["finishedAt"]) > since:
                found[uid] = int(seconds(end["finishedAt"]) - since)
    return found


def fails_itself(recorder: Recorder, uid: str) -> bool:
    """Whether a pod ended before anybody deleted it."""
    forms = [pod for _, pod, _ in recorder.forms[uid]]
    return any(pod["status"]["phase"] == "Failed" and "deletionTimestamp" not in pod["metadata"] for pod in forms)


def of(pod: Json, place: str) -> str:
    return f"/api/v1/namespaces/{place}/pods/{pod['metadata']['name']}"
