"""Resources that are watched on request."""

import re
from dataclasses import replace

import pytest

from gputally.aggregator.settings import Settings
from gputally.model.kube.kinds import OPTIONAL_RESOURCES
from gputally_sim.cluster import SimCluster
from tests.cluster.manifests import resource_quota
from tests.fakes.aggregating import aggregating, until_ready
from tests.fakes.command import scrape, sum_of
from tests.fakes.until import until


async def test_an_optional_watch_is_taken_up_when_its_right_is_granted(
    settings: Settings, cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gputally.kube.failures.LONGEST_SECONDS", 0.05)
    monkeypatch.setattr("gputally.kube.failures.FIRST_SECONDS", 0.05)
    cluster.faults.forbidden = {re.split("[./]", each)[0] for each in OPTIONAL_RESOURCES}  # without group and reason
    cluster.registry.create("resourcequotas", resource_quota("gpus", "default", gpus=5), "default")
    async with aggregating(replace(settings, watched=OPTIONAL_RESOURCES), cluster) as (running, url):
        await until_ready(running)
        without = await scrape(url)
        cluster.faults.forbidden = set()
        await until(lambda: all(watch.synced for watch in running.pipeline.health.watches))
        samples = await scrape(url)

    for resource in OPTIONAL_RESOURCES:
        assert sum_of(without, "gputally_watch_available", f'resource="{resource}"') == 0
        assert sum_of(samples, "gputally_watch_available", f'resource="{resource}"') == 1
    assert not [name for name in without if name.startswith("gputally_quota")]
    assert sum_of(samples, "gputally_quota_hard_gpus") == 5
