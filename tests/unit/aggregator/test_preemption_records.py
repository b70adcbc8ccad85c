"""On the simulated cluster, each preemption of a job is one record, and reaches a webhook that often fails."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from gputally.aggregator import preemption_webhook
from gputally.aggregator.settings import Settings
from gputally_sim.cluster import SimCluster
from tests.cluster.api import Api
from tests.cluster.manifests import Json, conduct, gpu_node, gpu_pod, job, namespace, priority_class
from tests.cluster.objects import Items, in_phase
from tests.fakes.aggregating import aggregating, until_ready
from tests.fakes.until import until
from tests.fakes.webhook import Receiver, listening, often_failing
from tests.unit.aggregator.conftest import NOON_US

GPUS, MEMBERS = 8, 2
PODS = "/api/v1/namespaces/ml/pods"


@pytest.fixture
async def cluster() -> AsyncIterator[SimCluster]:
    """A minute takes 3 s."""
    async with SimCluster(seed=1, speed=20, start_us=NOON_US, bookmark_s=0.05) as cluster:
        yield cluster


@pytest.fixture
async def api(cluster: SimCluster) -> AsyncIterator[Api]:
    """A node with 8 GPUs."""
    async with Api(cluster.url, "any") as api:
        await api.create(gpu_node("n1", gpus=GPUS))
        await api.create(namespace("ml"))
        for tier, value in (("low", 10), ("high", 1000)):
            await api.create(priority_class(tier, value))
        yield api


def pod(name: str, tier: str) -> Json:
    return gpu_pod(name, "ml", annotations=conduct(stop_after="2s"), priorityClassName=tier)


async def wave(api: Api, number: int) -> None:
    """Pods of high priority preempt a Job and pods without one, and leave again; the Job goes on."""
    await api.create(job(pod(f"train-{number}", "low"), parallelism=MEMBERS))
    for each in range(GPUS - MEMBERS):
        await api.create(pod(f"solo-{number}-{each}", "low"))
    await api.wait_for_items(PODS, lambda items: len(running(items, "low")) == GPUS)
    serving = [f"serve-{number}-{each}" for each in range(GPUS)]
    for name in serving:
        await api.create(pod(name, "high"))
    await api.wait_for_items(PODS, lambda items: len(running(items, "high")) == GPUS)
    for name in serving:
        await api.delete(f"{PODS}/{name}", grace_seconds=0)
    await api.wait_for_items(PODS, lambda items: len(running(items, "low")) == MEMBERS)
    await api.delete(f"/apis/batch/v1/namespaces/ml/jobs/train-{number}")
    await api.wait_for_items(PODS, lambda items: not items)


def running(items: Items, tier: str) -> Items:
    return [each for each in in_phase(items, "Running") if each["spec"]["priorityClassName"] == tier]


async def test_each_preemption_of_a_job_is_delivered_under_one_id_over_restarts(
    settings: Settings, cluster: SimCluster, api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preemption_webhook, "INTERVAL_SECONDS", 0.05)
    monkeypatch.setattr(preemption_webhook, "LONGEST_SECONDS", 0.1)
    receiver = Receiver(answer=often_failing(Random(1)))
    async with listening(receiver, tmp_path) as endpoint:
        settings = replace(settings, preemption_webhook=endpoint.path)
        for number in range(2):
            async with aggregating(settings, cluster) as (running, _):
                await until_ready(running)
                await wave(api, number)
        async with aggregating(settings, cluster):
            await until(lambda: pending(settings) == [])

    records = {each["id"]: each for each in receiver.accepted}
    assert sorted((each["job_kind"], len(each["pods"])) for each in records.values()) == [
        *[("Job", MEMBERS)] * 2,
        *[("Pod", 1)] * 2 * (GPUS - MEMBERS),
    ]
    assert all(each["pods"] == records[each["id"]]["pods"] for each in receiver.accepted)
    assert all(each["is_final"] and each["is_permitted"] for each in receiver.accepted)
    assert set(receiver.attempts) == records.keys()


def pending(settings: Settings) -> list[tuple[str]]:
    with closing(sqlite3.connect(f"file:{settings.ledger}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT job_preemption FROM preemption_deliveries WHERE result ISNULL").fetchall()
