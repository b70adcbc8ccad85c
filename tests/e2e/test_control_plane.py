"""Tests of the harness: real controllers act, kwok's pods follow their annotations, killed servers restart."""

import asyncio
import os
import subprocess
import sys
from contextlib import aclosing, suppress
from pathlib import Path

import pytest

from tests.cluster.api import Api, Refused
from tests.cluster.component import ComponentFailed
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import (
    POOL,
    Json,
    cluster_role,
    cluster_role_binding,
    conduct,
    deployment,
    gpu_node,
    gpu_pod,
    job,
    path,
    pod_disruption_budget,
    priority_class,
    resource_quota,
)
from tests.cluster.objects import Items, condition, container_state, in_phase, seconds, uids

pytestmark = pytest.mark.e2e


async def test_inference_preempts_training(api: Api, place: str) -> None:
    pods = await furnish(api, place, nodes=8)
    await api.create(priority_class(f"{place}-training", 500))
    await api.create(priority_class(f"{place}-inference", 10_000))
    for number in range(8):
        await api.create(of_tier(f"{place}-training", pod(f"training-{number}", place, stop_after="2s")))
    before = await api.wait_for_items(pods, lambda items: len(in_phase(items, "Running")) == 8)
    version = (await api.list(pods))["metadata"]["resourceVersion"]

    inference = [of_tier(f"{place}-inference", pod(f"inference-{number}", place)) for number in range(6)]
    preemptors = [await api.create(each) for each in inference]
    victims = await deleted(api, pods, since=version, number=6)

    after = await api.wait_for_items(pods, lambda items: len(in_phase(items, "Running")) == 8)
    assert uids(preemptors) < uids(after)
    assert uids(victims) == uids(before) - uids(after)
    for victim in victims:
        assert condition(victim, "DisruptionTarget")["status"] == "True"
        assert condition(victim, "DisruptionTarget")["reason"] == "PreemptionByScheduler"
        assert victim["metadata"]["deletionTimestamp"]
        assert victim["status"]["phase"] == "Failed"
        assert (
            container_state(victim, "terminated")["finishedAt"]
            > condition(victim, "DisruptionTarget")["lastTransitionTime"]
        )
    events = await preemptions(api, place, number=6)
    assert {event["involvedObject"]["uid"] for event in events} == uids(victims)
    assert {preemptor(event) for event in events} == uids(preemptors)


async def test_container_times_follow_the_annotations(api: Api, place: str) -> None:
    pods = await furnish(api, place, nodes=1)
    await api.create(pod("batch", place, start_after="2s", run_for="3s", exit_as="Failed"))

    ended = await api.wait_for(f"{pods}/batch", lambda pod: pod is not None and pod["status"]["phase"] == "Failed")

    assert ended
    end = container_state(ended, "terminated")
    assert seconds(end["startedAt"]) - seconds(condition(ended, "PodScheduled")["lastTransitionTime"]) == 2
    assert seconds(end["finishedAt"]) - seconds(end["startedAt"]) == 3
    assert end["exitCode"] == 1


async def test_a_deleted_pod_stops_at_the_time_in_its_annotation(api: Api, place: str) -> None:
    pods = await furnish(api, place, nodes=1)
    await api.create(pod("stubborn", place, stop_after="2s"))
    await api.wait_for_items(pods, lambda items: len(in_phase(items, "Running")) == 1)

    marked = await api.delete(f"{pods}/stubborn", grace_seconds=5)
    [gone] = await deleted(api, pods, since=marked["metadata"]["resourceVersion"], number=1)

    requested = seconds(marked["metadata"]["deletionTimestamp"]) - 5
    assert seconds(container_state(gone, "terminated")["finishedAt"]) - requested == 2


async def test_workload_controllers_work(api: Api, place: str) -> None:
    await furnish(api, place, nodes=2, gpus=8)
    budget, quota = (
        await api.create(pod_disruption_budget("serve", place, labels={"app": "serve"}, min_available=2)),
        await api.create(resource_quota("gpus", place, gpus=5)),
    )
    serving = await api.create(deployment(pod("serve", place), replicas=3))
    training = await api.create(job(pod("train", place, run_for="1s"), parallelism=2))

    await wait_for_status(api, serving, readyReplicas=3)
    await wait_for_status(api, training, succeeded=2)
    await wait_for_status(api, budget, currentHealthy=3, disruptionsAllowed=1)
    await wait_for_status(api, quota, used={"requests.nvidia.com/gpu": "3"})
    with pytest.raises(Refused, match="exceeded quota"):
        await api.create(pod("surplus", place, gpus=3))


async def test_a_node_declared_lost_stays_lost_and_is_evicted(api: Api, place: str) -> None:
    pods = await furnish(api, place, nodes=2)  # with all nodes lost, no pod is evicted
    await api.create(evicted_at_once(pod("training", place)))
    [running] = await api.wait_for_items(pods, lambda items: len(in_phase(items, "Running")) == 1)
    node = f"/api/v1/nodes/{running['spec']['nodeName']}"

    await api.patch(f"{node}/status", {"status": {"conditions": [LOST]}})
    [victim] = await deleted(api, pods, since=running["metadata"]["resourceVersion"], number=1)

    assert condition(victim, "DisruptionTarget")["reason"] == "DeletionByTaintManager"
    assert condition(await api.get(node), "Ready")["status"] == "Unknown"


async def test_the_user_gputally_has_exactly_the_permissions_bound_to_it(control_plane: ControlPlane, api: Api) -> None:
    reads_pods = cluster_role("e2e-reads-pods", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])
    async with Api(control_plane.url, control_plane.token("gputally"), control_plane.ca_file) as user:
        with pytest.raises(Refused, match="pods is forbidden"):
            await user.list("/api/v1/pods")

        made = [await api.create(reads_pods), await api.create(cluster_role_binding("e2e-reads-pods"))]
        await until_allowed(user, "/api/v1/pods")

        with pytest.raises(Refused, match="nodes is forbidden"):
            await user.list("/api/v1/nodes")
    for manifest in made:
        await api.delete(path(manifest))


async def test_killed_servers_restart_with_all_objects(control_plane: ControlPlane, api: Api, place: str) -> None:
    pods = await furnish(api, place, nodes=1, gpus=2)
    await api.create(pod("first", place))
    before = await api.wait_for_items(pods, lambda items: len(in_phase(items, "Running")) == 1)

    await control_plane.restart_api_server()
    await control_plane.restart_etcd()
    await api.create(pod("second", place))

    after = await api.wait_for_items(pods, lambda items: len(in_phase(items, "Running")) == 2)
    assert uids(before) < uids(after)


async def test_a_server_that_dies_shows_the_end_of_its_log(tmp_path: Path) -> None:
    with pytest.raises(ComponentFailed, match="unknown flag: --no-such-flag"):
        async with ControlPlane(tmp_path, api_server_args=["--no-such-flag"]):
            pass


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a process with its parent")
def test_servers_die_with_the_tests_that_started_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    os.mkfifo(log)
    tests = subprocess.Popen([sys.executable, "-c", TESTS_WITH_A_SERVER, str(log)])
    with log.open() as pipe:
        assert pipe.readline() == "serving\n"

        tests.kill()

        assert pipe.read() == ""  # ends when the server, the last writer, has died
    tests.wait()


async def furnish(api: Api, place: str, *, nodes: int, gpus: int = 1) -> str:
    """Create nodes; returns the path of the test's pods."""
    for number in range(nodes):
        await api.create(gpu_node(f"{place}-{number}", gpus=gpus, pool=place))
    return f"/api/v1/namespaces/{place}/pods"


def pod(name: str, place: str, *, gpus: int = 1, **conducts: str) -> Json:
    """A pod for this test's nodes."""
    return gpu_pod(name, place, gpus=gpus, annotations=conduct(**conducts), nodeSelector={POOL: place})


def of_tier(tier: str, pod: Json) -> Json:
    return pod | {"spec": pod["spec"] | {"priorityClassName": tier}}


def evicted_at_once(pod: Json) -> Json:
    """The pod, without a delay before eviction from a lost node."""
    unreachable = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    return pod | {"spec": pod["spec"] | {"tolerations": [unreachable | {"tolerationSeconds": 0}]}}


async def deleted(api: Api, pods: str, *, since: str, number: int) -> Items:
    """The final versions of the next deleted pods."""
    gone: Items = []
    async with asyncio.timeout(30), aclosing(api.watch(pods, since=since)) as events:
        async for event in events:
            if event["type"] == "DELETED":
                gone.append(event["object"])
            if len(gone) == number:
                break
    return gone


async def preemptions(api: Api, place: str, *, number: int) -> Items:
    """The Events of preemptions, which the scheduler sends in the background."""
    events = f"/api/v1/namespaces/{place}/events"
    return preempted(await api.wait_for_items(events, lambda items: len(preempted(items)) == number))


def preempted(events: Items) -> Items:
    return [event for event in events if event["reason"] == "Preempted"]


def preemptor(event: Json) -> str:
    """The preemptor's UID; v1.36 omits `related` and has it only in the message."""
    uid: str = event["related"]["uid"] if "related" in event else event["message"].split()[3]
    return uid


async def wait_for_status(api: Api, manifest: Json, **status: object) -> None:
    await api.wait_for(path(manifest), lambda found: found is not None and status.items() <= found["status"].items())


async def until_allowed(user: Api, path: str) -> None:
    """Wait until the API server applies a new binding, which is shortly after it stores it."""
    async with asyncio.timeout(10):
        while True:
            with suppress(Refused):
                await user.list(path)
                return
            await asyncio.sleep(0.05)


LOST = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
TESTS_WITH_A_SERVER = """
import signal, sys
from pathlib import Path
from tests.cluster.component import Component
server = "import time; print('serving', flush=True); time.sleep(30); print('orphaned')"
Component([sys.executable, "-c", server], log=Path(sys.argv[1]), health="").launch()
signal.pause()
"""
