"""Scenario S1 in some minutes: training has all GPUs, inference takes six of them, and some of it fits nowhere.

It only acts, and keeps what it saw; tests ask afterwards what Prometheus, ledger and receivers made of it.
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
"""So all pods of training-low lose their GPUs, and one of training-standard."""
LARGE: Final = 2
"""GPUs of a pod that no node has at first."""
PATIENCE_S: Final = 480
"""No notification takes so long; a missing one should fail its test, not the day."""
TRAINING: Final = conduct(run_for="2h", stop_after="2s")
SERVE: Final = "/apis/apps/v1/namespaces/ml-inference/deployments/serve"


async def play(scene: Scene, receiver: Receiver, by_address: PrometheusServer) -> Day:
    """The whole day."""
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
        await _some_fits_nowhere(day, scene)
        _gpu_fails(scene)
        day.paged = await paged
        await _capacity_is_given(day, scene)
        await _aggregators_succeed_each_other(day, scene, by_address)
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
    await scene.open_books()
    await stage.create(*_training())
    await stage.running(GPUS)
    await scene.held(GPUS * 10)


async def _inference_scales_up(day: Day, scene: Scene) -> None:
    """It takes six GPUs."""
    stage = scene.stage
    await stage.create(pod_disruption_budget("serve", "ml-inference", labels={"app": "serve"}, min_available=2))
    serve = _pod("serve", "ml-inference", "inference-critical", conduct(start_after="1s"))
    await stage.create(deployment(serve, replicas=0))
    day.preempted_from = math.floor(time.time())
    await stage.api.patch(SERVE, {"spec": {"replicas": SERVING}})
    await stage.running(SERVING, tier="inference-critical")
    await stage.running(GPUS)


async def _some_fits_nowhere(day: Day, scene: Scene) -> None:
    """Two pods of different tiers and tenants want two GPUs of one node each; six of training wait for one."""
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
    """Memory errors of one of the GPUs that agents measure; its XID and its heat are in its script from the start."""
    scene.measured[-1].gpu.change(ecc=(3, 1, 3, 1), remapped=(0, 1, 1, 0))


async def _capacity_is_given(day: Day, scene: Scene) -> None:
    """A node for the two, and a spare one that is closed."""
    day.small_until = await scene.visible()
    closed = gpu_node("node-spare", gpus=1, pool="spare") | {"spec": {"unschedulable": True}}
    await scene.stage.create(gpu_node("node-large", gpus=2 * LARGE, pool="large"), closed)
    await scene.stage.running(GPUS + 2)


async def _aggregators_succeed_each_other(day: Day, scene: Scene, by_address: PrometheusServer) -> None:
    """Twice, before the eyes of a second Prometheus: the first time it sees the old one go."""
    await by_address.reload(scene.by_address())
    day.compared_from = await scene.visible(by_address)
    await scene.held(GPUS * 10)
    day.noticed = await _succession(scene, by_address)
    await scene.held(GPUS * 10)
    day.unnoticed = await _succession(scene, by_address, unnoticed=True)


async def _succession(scene: Scene, by_address: PrometheusServer, *, unnoticed: bool = False) -> Succession:
    before = await scene.visible(by_address)
    if unnoticed:  # so it leaves no mark that the series of the old instance ended: they stay in sight for minutes
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
    """When the first notification of that status names the alert."""

    def has_come(receiver: Receiver) -> bool:
        return any(alert in each.names and each.status == status for each in receiver.notifications)

    try:
        await receiver.until(has_come, within=PATIENCE_S)
    except TimeoutError:
        return NEVER
    return time.time()


def _training() -> list[Json]:
    """A Job for each GPU: that of a pod that is preempted makes another ten seconds later."""
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
    """Those bound to no node."""
    return [each for each in pods if not each["spec"].get("nodeName")]


def _waiting(pods: Items) -> dict[Group, Waiting]:
    groups = defaultdict[Group, Items](list)
    for pod in waiting_pods(pods):
        groups[group_of(pod)].append(pod)
    return {group: _of_group(members) for group, members in groups.items()}


def _of_group(pods: Items) -> Waiting:
    since = min(seconds(pod["metadata"]["creationTimestamp"]) for pod in pods)
    return Waiting(len(pods), sum(map(gpus, pods)), since)
