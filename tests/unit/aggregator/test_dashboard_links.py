"""The links from the status page to the dashboards in Grafana."""

from dataclasses import replace

from gputally.aggregator.pages import DASHBOARDS
from gputally.aggregator.settings import Settings
from gputally_sim.cluster import SimCluster
from monitoring.generate import boards
from monitoring.uid import uid
from tests.fakes.aggregating import aggregating, until_ready
from tests.fakes.command import get


async def shown(settings: Settings, cluster: SimCluster) -> str:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        _, page = await get(f"{url}/")
    return page


async def test_with_a_url_of_grafana_the_status_page_links_to_dashboards(
    settings: Settings, cluster: SimCluster
) -> None:
    page = await shown(replace(settings, grafana="https://grafana.example/gpu"), cluster)

    for name, meaning in DASHBOARDS:
        assert f'<a href="https://grafana.example/gpu/d/{name}">' in page
        assert meaning in page


async def test_without_one_it_links_to_none(settings: Settings, cluster: SimCluster) -> None:
    assert "dashboard:" not in await shown(settings, cluster)


def test_the_linked_dashboards_exist() -> None:
    assert {name for name, _ in DASHBOARDS} <= {uid(name) for name in boards()}
