"""Scenario S1 in some minutes: training has all GPUs, inference preempts six, and some pods fit on no node.

It only acts and records; the tests check afterwards what Prometheus, the ledger and the receivers have.
"""

import asyncio
import math
import time
from collections import defaultdict
from typing import Final

from tests.behaviour.recorder import gpus
from tests.behaviour.stage import PODS
from tests.behaviour.test_scenarios import S1_TIERS
from tests.cluster.manifests import (
    POOL,
    Json,
    conduct,
    deployment,
    gpu_node,
    gpu_pod,
    job,
    namespace,
    pod_disruption_budget,
    priority_class,
)
from tests.cluster.objects import Items, seconds
from tests.monitoring_e2e.day import NEVER, TEAMS, Day, Group, Succession, Waiting
from tests.monitoring_e2e.ledger import Ledger
from tests.monitoring_e2e.scene import Scene
from tests.prometheus.receiver import Receiver
from tests.prometheus.server import PrometheusServer

GPUS: Final = 8
LOW: Final = 5
SERVING: Final = 6
"""Preempts all pods of training-low and one of training-standard."""
LARGE: Final = 2
"""GPUs of a pod that fits on no node at first."""
TIMEOUT_S: Final = 480
"""Longer than any notification takes; a missing one fails its test, not the scenario."""
TRAINING: Final = conduct(run_for="2h", stop_after="2s")
SERVE: Final = "/apis/apps/v1/namespaces/ml-inference/deployments/serve"


async def play(scene: Scene, receiver: Receiver, by_address: PrometheusServer) -> Day:
    """Run the whole scenario."""
    day = Day(
        prometheus=scene.prometheus.api,
        by_address=by_address.api,
        ledger=Ledger(scene.stage.product.ledger),
        record=scene.stage.recorder,
        scripts={each.node: each.gpu for each in scene.measured},
    )
    async with asyncio.TaskGroup() as tasks:
        paged = tasks.create_task(_arrival(receiver, "InferencePodsPending", "firing"))
        resolved = tasks.create_task(_arrival(receiver, "InferencePodsPending", "resolved"))
        warned = tasks.create_task(_arrival(receiver, "HighPreemptionRate", "firing"))
        await _morning(day, scene)
        await _inference_scales_up(day, scene)
        await _large_pods_fit_nowhere(day, scene)
        _gpu_fails(scene)
        day.paged = await paged
        await _capacity_is_added(day, scene)
        await _aggregator_is_replaced_twice(day, scene, by_address)
        day.resolved, day.warned = await resolved, await warned
    day.ended = await scene.visible()
    day.notifications = tuple(receiver.notifications)
    day.rules, day.alerts = (scene.prometheus.api.get(path) for path in ("rules", "alerts"))
    return day


async def _morning(day: Day, scene: Scene) -> None:
    """Training fills the GPUs."""
    stage = scene.stage
    await stage.create(*(gpu_node(f"node-{number}", gpus=1, pool="day") for number in range(GPUS)))
    await stage.create(*(priority_class(name, value) for name, value in S1_TIERS.items()))
    await stage.create(*(namespace(name, labels={"team": team}) for name, team in TEAMS.items()))
    day.began = math.floor(time.time())
    await scene.start_accounting()
    await stage.create(*_training())
    await stage.running(GPUS)
    await scene.held(GPUS * 10)


async def _inference_scales_up(day: Day, scene: Scene) -> None:
    """Inference preempts six GPUs."""
    stage = scene.stage
    await stage.create(pod_disruption_budget("serve", "ml-inference", labels={"app": "serve"}, min_available=2))
    serve = _pod("serve", "ml-inference", "inference-critical", conduct(start_after="1s"))
    await stage.create(deployment(serve, replicas=0))
    day.preempted_from = math.floor(time.time())
    await stage.api.patch(SERVE, {"spec": {"replicas": SERVING}})
    await stage.running(SERVING, tier="inference-critical")
    await stage.running(GPUS)


async def _large_pods_fit_nowhere(day: Day, scene: Scene) -> None:
    """Two pods of different tiers and tenants each need two GPUs of a node; six training pods need one."""
    large = [
        _pod("large", "ml-inference", "inference-standard", gpus=LARGE, pool="large"),
        _pod("large", "ml-search", "inference-critical", gpus=LARGE, pool="large"),
    ]
    made = [await scene.stage.api.create(each) for each in large]
    day.large_created = {group_of(pod): seconds(pod["metadata"]["creationTimestamp"]) for pod in made}
    await scene.stage.pods(lambda items: len(waiting_pods(items)) == SERVING + len(large))
    day.waiting_at = await scene.visible()
    day.waiting = _waiting((await scene.stage.api.list(PODS))["items"])


def _gpu_fails(scene: Scene) -> None:
    """Add memory errors to a measured GPU; its script has the XID and throttling from the start."""
    scene.measured[-1].gpu.change(ecc=(3, 1, 3, 1), remapped=(0, 1, 1, 0))


async def _capacity_is_added(day: Day, scene: Scene) -> None:
    """Add a node for the two large pods, and a cordoned spare node."""
    day.small_until = await scene.visible()
    closed = gpu_node("node-spare", gpus=1, pool="spare") | {"spec": {"unschedulable": True}}
    await scene.stage.create(gpu_node("node-large", gpus=2 * LARGE, pool="large"), closed)
    await scene.stage.running(GPUS + 2)


async def _aggregator_is_replaced_twice(day: Day, scene: Scene, by_address: PrometheusServer) -> None:
    """Replace it twice while a second Prometheus scrapes; that sees the old one end only the first time."""
    await by_address.reload(scene.by_address())
    day.compared_from = await scene.visible(by_address)
    await scene.held(GPUS * 10)
    day.noticed = await _succession(scene, by_address)
    await scene.held(GPUS * 10)
    day.unnoticed = await _succession(scene, by_address, unnoticed=True)


async def _succession(scene: Scene, by_address: PrometheusServer, *, unnoticed: bool = False) -> Succession:
    before = await scene.visible(by_address)
    if unnoticed:  # it writes no staleness markers, so the old instance's series remain visible for minutes
        by_address.kill()
    await scene.succeed()
    await scene.scrape()
    if unnoticed:
        by_address.file.write_text(scene.by_address().rendered())
        await by_address.start()
    else:
        await by_address.reload(scene.by_address())
    return Succession(before, await scene.visible(by_address))


async def _arrival(receiver: Receiver, alert: str, status: str) -> float:
    """When the first notification with that status names the alert."""

    def has_arrived(receiver: Receiver) -> bool:
        return any(alert in each.names and each.status == status for each in receiver.notifications)

    try:
        await receiver.until(has_arrived, within=TIMEOUT_S)
    except TimeoutError:
        return NEVER
    return time.time()


def _training() -> list[Json]:
    """A Job for each GPU; ten seconds after a preemption the Job creates another pod."""
    names = [f"low-{number}" for number in range(LOW)] + [f"standard-{number}" for number in range(GPUS - LOW)]
    return [
        job(_pod(name, "ml-training", f"training-{name.partition('-')[0]}", TRAINING), backoffLimit=3) for name in names
    ]


def _pod(
    name: str, namespace: str, tier: str, conduct: dict[str, str] | None = None, *, gpus: int = 1, pool: str = "day"
) -> Json:
    return gpu_pod(
        name, namespace, gpus=gpus, annotations=conduct or {}, priorityClassName=tier, nodeSelector={POOL: pool}
    )


def group_of(pod: Json) -> Group:
    return pod["spec"]["priorityClassName"], TEAMS[pod["metadata"]["namespace"]]


def waiting_pods(pods: Items) -> Items:
    """The pods without a node."""
    return [each for each in pods if not each["spec"].get("nodeName")]


def _waiting(pods: Items) -> dict[Group, Waiting]:
    groups = defaultdict[Group, Items](list)
    for pod in waiting_pods(pods):
        groups[group_of(pod)].append(pod)
    return {group: _of_group(members) for group, members in groups.items()}


def _of_group(pods: Items) -> Waiting:
    since = min(seconds(pod["metadata"]["creationTimestamp"]) for pod in pods)
    return Waiting(len(pods), sum(map(gpus, pods)), since)
