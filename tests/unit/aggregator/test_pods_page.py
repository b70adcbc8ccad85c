"""The page with the series of pods and nodes."""

from dataclasses import replace

from gputally.aggregator.settings import Settings
from gputally_sim.cluster import SimCluster
from tests.fakes.aggregating import aggregating, until_ready
from tests.fakes.command import get, scrape, sum_of


async def test_pods_and_nodes_have_their_own_page(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        fleet = await scrape(url)
        pods = await scrape(url, "/metrics/pods")

    assert sum_of(pods, "gputally_pod_info") == sum(name.startswith("gputally_pod_gpus{") for name in pods)
    assert sum_of(pods, "gputally_pod_gpus") == sum_of(fleet, "gputally_allocated_gpus") == 8
    assert sum_of(pods, "gputally_node_gpus") == sum_of(fleet, "gputally_capacity_gpus")
    assert not any(name.startswith("gputally_pod_") for name in fleet)


async def test_the_page_of_pods_can_be_switched_off(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(replace(settings, pod_metrics=False), cluster) as (running, url):
        await until_ready(running)
        status, _ = await get(f"{url}/metrics/pods")

    assert status == 404
