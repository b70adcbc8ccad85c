"""Scenario S2 in half a minute: four tiers, the lowest of which never preempts, and quotas by tier."""

import math
import time
from dataclasses import dataclass
from typing import Final

from hack.pictures.variables import Window
from hack.prometheus import Prometheus
from tests.behaviour.stage import PODS
from tests.behaviour.test_scenarios import S2_TEAMS, S2_TIERS, never, placed, pod
from tests.cluster.api import Refused
from tests.cluster.manifests import Json, conduct, path, resource_quota
from tests.monitoring_e2e.day import window
from tests.monitoring_e2e.ledger import Ledger
from tests.monitoring_e2e.play import waiting_pods
from tests.monitoring_e2e.scene import Scene

NOTEBOOKS: Final = 6
STOP: Final = conduct(stop_after="1s")
QUOTAS: Final = (
    resource_quota("training", "tenant-alpha", gpus=8, priority_class="gpu-training"),
    resource_quota("interactive", "tenant-beta", gpus=NOTEBOOKS, priority_class="gpu-interactive"),
)


@dataclass(frozen=True, kw_only=True)
class Posture:
    """The result of the scenario, and the servers that observed it."""

    prometheus: Prometheus
    ledger: Ledger
    refusal: str
    """The error for a notebook beyond the quota."""
    waiting: Window
    """The time until an interactive pod was pending."""
    whole: Window
    """The whole scenario, until all pods were deleted."""


async def play(scene: Scene) -> Posture:
    """Training preempts the notebooks, serving preempts batch, and interactive waits."""
    stage = scene.stage
    began = math.floor(time.time())
    await stage.furnish(nodes=3, gpus=8, tiers=S2_TIERS, teams=S2_TEAMS)
    await stage.create(never("gpu-interactive", 200), *QUOTAS)
    await scene.start_accounting()
    await stage.create(*(notebook(number) for number in range(NOTEBOOKS)))
    await stage.create(placed(pod("batch", "tenant-beta", "gpu-batch", STOP, gpus=4), "node-1"))
    await stage.create(placed(pod("serve", "tenant-alpha", "gpu-serving", STOP, gpus=6), "node-2"))
    await stage.running(NOTEBOOKS + 2)
    refusal = await refused(scene, notebook(NOTEBOOKS))
    await scene.held(16 * 8)
    await stage.create(pod("train", "tenant-alpha", "gpu-training", STOP, gpus=8))
    await stage.running(1, tier="gpu-training")
    await stage.create(pod("rollout", "tenant-beta", "gpu-serving", STOP, gpus=8))
    await stage.running(2, tier="gpu-serving")
    await stage.create(pod("waits", "tenant-alpha", "gpu-interactive", STOP, gpus=8))
    await stage.pods(lambda items: len(waiting_pods(items)) == 1)
    await scene.held(22 * 8)
    waiting = await scene.visible()
    await stage.delete_all(*[path({**pod, **OF_PODS}) for pod in (await stage.api.list(PODS))["items"]])
    return Posture(
        prometheus=scene.prometheus.api,
        ledger=Ledger(stage.product.ledger),
        refusal=refusal,
        waiting=window(began, waiting),
        whole=window(began, await scene.steady()),
    )


OF_PODS: Final = {"apiVersion": "v1", "kind": "Pod"}
"""The fields that list items omit."""


def notebook(number: int) -> Json:
    return placed(pod(f"notebook-{number}", "tenant-beta", "gpu-interactive", STOP), "node-0")


async def refused(scene: Scene, manifest: Json) -> str:
    """The API's error for the manifest; empty if it is created."""
    try:
        await scene.stage.api.create(manifest)
    except Refused as refusal:
        return str(refusal)
    return ""
