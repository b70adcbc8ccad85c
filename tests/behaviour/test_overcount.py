"""What a killed process had charged too much stands in the overcount of the next one until later time offsets it."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gputally_sim.cluster import SimCluster
from tests.behaviour.conftest import kubeconfig_for, staged
from tests.behaviour.product import total
from tests.behaviour.published import differences, surplus
from tests.behaviour.stage import Stage
from tests.cluster.api import Api
from tests.cluster.manifests import Json, conduct, gpu_pod

TIERS = {"training": 100}
TEAMS = {"ml": "research"}
GPUS = 4
PENDING = "gputally_pending_gpu_seconds_total"


@asynccontextmanager
async def simulated(scratch: Path) -> AsyncIterator[tuple[Stage, SimCluster]]:
    """A simulated cluster whose watches can be stalled."""
    async with SimCluster(start_us=time.time_ns() // 1000) as cluster, Api(cluster.url, "any") as api:
        kubeconfig = scratch / "kubeconfig"
        kubeconfig.write_text(json.dumps(kubeconfig_for(cluster.url)))
        async with staged(api, kubeconfig, scratch) as stage:
            await stage.furnish(nodes=1, gpus=GPUS, tiers=TIERS, teams=TEAMS)
            yield stage, cluster


async def test_a_wait_that_was_charged_before_a_kill_and_was_over_by_then_is_the_overcount(tmp_path: Path) -> None:
    async with simulated(tmp_path) as (stage, cluster):
        product = stage.product
        await product.start()
        await stage.create(pod("train"))
        await stage.running(1)
        await stage.create(pod("waits"))
        await product.until(lambda found: total(found, PENDING) > 1)

        cluster.faults.stall()  # the binding is not observed, and the wait is charged further
        await stage.api.delete("/api/v1/namespaces/ml/pods/train", grace_seconds=0)
        charged = total(await product.scrape(), PENDING)
        before = await product.until(lambda found: total(found, PENDING) > charged + 8 * GPUS)
        await product.kill()
        cluster.faults.resume()
        await product.start()
        after = await product.until(lambda found: not total(found, "gputally_pending_reason_pods"))

        overcount = total(after, "gputally_overcount_gpu_seconds", counter="pending")
        assert overcount > 4 * GPUS
        assert total(after, PENDING) >= total(before, PENDING)
        assert surplus(after, product, "pending") == pytest.approx(overcount, abs=1e-6)
        cost = total(after, "gputally_overcount_cost", counter="pending_cost")
        assert surplus(after, product, "pending_cost") == pytest.approx(cost, abs=1e-6)
        assert differences(after) == {0}

        await stage.create(pod("next"))
        rested = await product.until(
            lambda found: not total(found, "gputally_overcount_gpu_seconds", counter="pending"), within=60
        )
        assert total(rested, PENDING) >= total(after, PENDING)
        assert differences(rested) == {0}


def pod(name: str) -> Json:
    stop = conduct(run_for="1h")
    return gpu_pod(name, "ml", gpus=GPUS, annotations=stop, priorityClassName="training")
