"""Two real Prometheus servers at different phases and intervals scrape one aggregator: a pair for high availability."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gputally_sim.cluster import SimCluster
from hack.prometheus import Answer
from tests.behaviour.conftest import kubeconfig_for
from tests.behaviour.product import Product
from tests.cluster.api import Api
from tests.cluster.manifests import conduct, gpu_node, gpu_pod, namespace, path, priority_class
from tests.prometheus.server import Configuration, PrometheusServer, scrape

pytestmark = pytest.mark.e2e

ZERO_S = 8
COUNTERS = '{__name__=~"gputally_(allocated_gpu_seconds|allocated_cost|capacity_gpu_seconds|preemptions)_total"}'
TARGET = {"instance", "job"}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    """Of a simulated cluster with two nodes, whose kubeconfig lies in the test's folder."""
    async with SimCluster(start_us=time.time_ns() // 1000) as cluster, Api(cluster.url, "any") as api:
        (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig_for(cluster.url)))
        for number in range(2):
            await api.create(gpu_node(f"node-{number}", gpus=8))
        await api.create(priority_class("high", 1000))
        for team in ("red", "blue"):
            await api.create(namespace(team, labels={"team": team}))
        yield api


async def test_two_servers_see_every_series_begin_at_0_and_end_at_the_same_value(tmp_path: Path, api: Api) -> None:
    product = Product(tmp_path, tmp_path / "kubeconfig", zero_s=ZERO_S)
    await product.start()
    try:
        async with server(tmp_path, "a", product, "1s") as a, server(tmp_path, "b", product, "3s") as b:
            for each in (a, b):
                await each.until_up("gputally")
            await work(api, product)
            await asyncio.sleep(3 * 2)  # the slower of them comes once more
            seen = [history(await each.query(f"{COUNTERS}[10m]")) for each in (a, b)]
    finally:
        await product.kill()

    one, other = seen
    assert one.keys() == other.keys()
    assert {(one[labels][0], other[labels][0]) for labels in one} == {(0.0, 0.0)}
    at_rest = [labels for labels in one if "capacity" not in labels]
    assert {labels: one[labels][-1] for labels in at_rest} == {labels: other[labels][-1] for labels in at_rest}
    assert sum(one[labels][-1] for labels in at_rest if "allocated_gpu_seconds" in labels) >= 6


def server(scratch: Path, name: str, product: Product, interval: str) -> PrometheusServer:
    """One of the pair; its label makes it scrape at a phase of its own."""
    configuration = Configuration(
        scrape_configs=[scrape("gputally", product.url)],
        scrape_interval=interval,
        external_labels={"replica": name},
    )
    return PrometheusServer(scratch / name, configuration)


async def work(api: Api, product: Product) -> None:
    """Pods of two tenants come and go while somebody looks; all are gone and shown in the end."""
    pods = [
        gpu_pod(f"run-{number}", team, gpus=number, annotations=conduct(run_for="2s"), priorityClassName=tier)
        for number, (team, tier) in enumerate((("red", ""), ("blue", ""), ("red", "high")), 1)
    ]
    for pod in pods:
        await api.create(pod)
        await product.scrape()  # somebody looks in between
        await asyncio.sleep(0.7)
    await product.query_until(
        "SELECT count(*) FROM current_segments WHERE end_us NOT NULL", lambda rows: rows[0][0] >= len(pods)
    )
    for pod in pods:
        await api.delete(path(pod))
    await asyncio.sleep(ZERO_S)


def history(answer: Answer) -> dict[str, list[float]]:
    """The values of each series, by its name and labels without those of the target."""
    return {
        json.dumps(sorted(pair for pair in each.labels.items() if pair[0] not in TARGET)): [v for _, v in each.points]
        for each in answer.series
    }
