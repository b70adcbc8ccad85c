"""The page that people open first."""

import re

from gputally.aggregator.settings import Settings
from gputally.model.node_record import LabelConflict
from gputally_sim.cluster import SimCluster
from gputally_sim.scenarios.fleet import NodePool, gpu_node
from tests.fakes.aggregating import aggregating, until_ready
from tests.fakes.command import get
from tests.fakes.until import until


def cells(page: str, caption: str) -> list[list[str]]:
    """The texts of the rows of a table, without its heads."""
    [table] = re.findall(rf"<caption>{caption}</caption>.*?<tbody>(.*?)</tbody>", page, re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>([^<]*)</t", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]


async def test_it_shows_the_fleet_and_the_health_of_its_sources(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        await until(lambda: all(watch.connected for watch in running.pipeline.health.watches))
        status, page = await get(url)

    assert status == 200
    assert '<p class="state ready" role="status">Ready</p>' in page
    assert cells(page, "GPUs of 8 nodes") == [["allocated", "8"]]
    assert {row[0] for row in cells(page, "Tiers")} >= {"inference-critical"}
    assert sum(float(row[1]) for row in cells(page, "Tenants")) == 8
    assert {row[0]: row[1] for row in cells(page, "Watches")}["pods"] == "connected"
    assert cells(page, "Agents")[0][0] == "0 of 0 reachable"
    assert cells(page, "Ledger")[0][0] == "writable"
    assert 'href="/api/v1/allocations"' in page
    assert 'href="/api/v1/at-risk"' in page
    assert 'href="/metrics/pods"' in page


async def test_it_names_nodes_whose_labels_contradict_their_units(settings: Settings, cluster: SimCluster) -> None:
    cluster.registry.create("nodes", gpu_node("odd", NodePool("odd", 1, 1), offered={"nvidia.com/gpu": 50}))
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        _, page = await get(url)

    assert cells(page, "Nodes with contradictory GPU labels") == [["odd", LabelConflict.MORE_UNITS.sentence]]
    assert cells(page, "GPUs of 9 nodes") == [["allocated", "8"], ["free", "1"]]


async def test_it_says_what_it_waits_for(settings: Settings, cluster: SimCluster) -> None:
    cluster.faults.hold_lists()
    async with aggregating(settings, cluster) as (_, url):
        _, page = await get(url)
        cluster.faults.resume()

    assert "<li>watch pods: no complete list yet</li>" in page
    assert ["pods", "not connected, no complete list yet"] in [row[:2] for row in cells(page, "Watches")]
