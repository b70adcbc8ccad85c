"""Why pods wait, on both clusters, and what the wait is charged to, also over a restart."""

import asyncio
import copy

import pytest

from tests.behaviour.product import Samples, total
from tests.behaviour.stage import Stage
from tests.cluster.manifests import Json, conduct, gpu_pod

TIERS = {"training": 100, "serving": 1_000}
TEAMS = {"ml": "research"}
GPUS = 4


async def test_a_pending_pod_has_the_reason_that_keeps_it_from_its_node(stage: Stage) -> None:
    await stage.furnish(nodes=1, gpus=GPUS, tiers=TIERS, teams=TEAMS)
    await stage.product.start()
    await stage.create(pod("train", "training", GPUS))
    await stage.running(1)

    await stage.create(pod("equal", "training", 1))
    await reported(stage, "training", capacity=1)
    await stage.create(pod("large", "training", GPUS + 1))
    await reported(stage, "training", capacity=1, impossible=1)
    await stage.create(pod("gated", "training", 1, schedulingGates=[{"name": "example.com/later"}]))
    await reported(stage, "training", capacity=1, impossible=1, gated=1)
    elsewhere = {"kubernetes.io/hostname": "no-such-node"}
    await stage.create(pod("elsewhere", "training", 1, nodeSelector=elsewhere))
    await reported(stage, "training", capacity=1, impossible=1, gated=1, excluded=1)
    await stage.create(pod("serve", "serving", 1))
    await reported(stage, "serving", victims_stopping=1)

    await stage.running(1, tier="serving")
    await reported(stage, "serving", victims_stopping=0)


async def test_a_wait_goes_on_over_a_restart_and_every_second_of_it_counts_once(stage: Stage) -> None:
    await stage.furnish(nodes=1, gpus=GPUS, tiers=TIERS, teams=TEAMS)
    await stage.product.start()
    await stage.create(pod("train", "training", GPUS))
    await stage.running(1)
    await stage.create(pod("waits", "training", 2))
    before = await charged_for(stage, 1)

    await stage.product.kill()
    await stage.product.start()

    await reported(stage, "training", capacity=1)
    after = await charged_for(stage, before + 2)
    assert after >= before
    await stage.api.delete("/api/v1/namespaces/ml/pods/waits", grace_seconds=0)
    await reported(stage, "training", capacity=0)
    samples = await stage.product.scrape()
    await asyncio.sleep(0.3)  # the ledger is written
    [(charged, parts, causes)] = stage.product.query(
        "SELECT sum(quantity * (to_us - from_us)), count(*), count(DISTINCT cause) FROM waits WHERE name = 'waits'"
    )
    assert parts >= 1
    assert abs(total(samples, "gputally_pending_gpu_seconds_total", tier="training") - charged / 1e12) < 2 * 3
    assert causes <= 2  # that of its reason, and the moment until it was known


@pytest.mark.parametrize("plane", [pytest.param("real", marks=pytest.mark.e2e)], indirect=True)
async def test_a_pod_waits_for_the_cpu_that_pods_without_gpus_take_also_after_a_restart(stage: Stage) -> None:
    await stage.furnish(nodes=1, gpus=GPUS, tiers=TIERS, teams=TEAMS)
    await stage.product.start()
    await stage.create(cpu_pod("preprocess", cpu="95500m"))
    await stage.running(1)

    await stage.create(pod("waits", "training", 1))
    await reported(stage, "training", cpu_or_memory=1)
    await stage.product.kill()
    await stage.product.start()
    await reported(stage, "training", cpu_or_memory=1)
    await stage.product.until(lambda samples: total(samples, "gputally_stranded_gpus", reason="cpu") == GPUS)

    await stage.api.delete("/api/v1/namespaces/ml/pods/preprocess", grace_seconds=0)
    await stage.running(1, tier="training")
    await reported(stage, "training", cpu_or_memory=0)


async def reported(stage: Stage, tier: str, **reasons: int) -> None:
    """Wait until so many pods of the tier are reported to wait for these reasons."""

    def is_reported(samples: Samples) -> bool:
        return all(
            total(samples, "gputally_pending_reason_pods", tier=tier, reason=reason) == count
            for reason, count in reasons.items()
        )

    await stage.product.until(is_reported)


async def charged_for(stage: Stage, least: float) -> float:
    """Wait until so many GPU-seconds are charged; returns them."""
    samples = await stage.product.until(lambda found: total(found, "gputally_pending_gpu_seconds_total") > least)
    return total(samples, "gputally_pending_gpu_seconds_total")


def pod(name: str, tier: str, gpus: int, **spec: object) -> Json:
    stop = conduct(run_for="1h", stop_after="2s")
    found = gpu_pod(name, "ml", gpus=gpus, annotations=stop, priorityClassName=tier)
    return found | {"spec": found["spec"] | spec}


def cpu_pod(name: str, *, cpu: str) -> Json:
    found = copy.deepcopy(gpu_pod(name, "ml", gpus=0, annotations=conduct(run_for="1h"), priorityClassName="training"))
    found["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return found
