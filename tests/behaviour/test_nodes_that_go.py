"""Nodes that are deleted, that come and go during downtime, and that register again."""

import asyncio
import time
from dataclasses import dataclass

import pytest

from tests.behaviour.product import PRICE, total
from tests.behaviour.stage import Stage
from tests.cluster.manifests import Json, conduct, gpu_node, gpu_pod, namespace, path
from tests.cluster.objects import condition, container_state, in_phase, named, seconds

REAL = pytest.param("real", marks=pytest.mark.e2e)
MACHINE = "4c4c4544-0035-3510-8056-c7c04f505432"
ENDS = """
SELECT a.end_us, a.end_by, a.gap_from_us FROM allocations a
WHERE a.pod_uid = '{uid}' AND a.revision = (SELECT max(revision) FROM allocations b WHERE b.pod_uid = a.pod_uid)
"""
HELD = """
SELECT count(s.price_key) = count(*), min(s.gpu_model) FROM current_segments s WHERE s.pod_uid = '{uid}'
"""


@dataclass(frozen=True, kw_only=True)
class Instant:
    """An action took effect between `after` and `before` (s since the epoch)."""

    after: float
    before: float

    def __contains__(self, us: object) -> bool:
        return isinstance(us, int) and self.after - 0.05 <= us / 10**6 <= self.before + 1


def node(name: str, *, machine: str = "", gpus: int = 1) -> Json:
    """A node of a machine with this system UUID. An API server requires all fields of nodeInfo or none."""
    made = gpu_node(name, gpus=gpus)
    parts = ("machineID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion")
    more = ("kubeProxyVersion", "operatingSystem", "architecture")
    info = dict.fromkeys((*parts, *more), "") | {"systemUUID": machine}
    return made | {"status": made["status"] | {"nodeInfo": info}}


async def created(stage: Stage, manifest: Json, pod: str = "", **conducts: str) -> Json:
    """A ready node; with `pod`, that pod runs on it, or has completed if `conducts` are given."""
    await stage.create(manifest)
    name = manifest["metadata"]["name"]
    await stage.api.wait_for(path(manifest), lambda found: bool(found and condition(found, "Ready")))
    if not pod:
        return manifest
    there = {"kubernetes.io/hostname": name}
    await stage.create(gpu_pod(pod, "training", annotations=conduct(**conducts), nodeSelector=there))
    phase = "Succeeded" if conducts else "Running"
    items = await stage.pods(lambda items: bool(named(in_phase(items, phase), pod)))
    found = named(items, pod)
    assert found
    return found


async def deleted(stage: Stage, path: str) -> Instant:
    after = time.time()
    await stage.api.delete(path)
    return Instant(after=after, before=time.time())


async def next_second() -> None:
    """Wait for the next whole second: API times are cut to seconds, and no machine registers twice in one."""
    await asyncio.sleep(1 - time.time() % 1)


async def watched_on_its_machine(stage: Stage, pod: str) -> None:
    """The product observes a node of the machine, with the pod on one of its two GPUs."""
    await created(stage, node("same", machine=MACHINE, gpus=2), pod)
    await stage.product.start()
    await next_second()


@pytest.fixture
async def furnished(stage: Stage) -> Stage:
    await stage.create(namespace("training", labels={"team": "red"}))
    return stage


@pytest.mark.parametrize("plane", [REAL], indirect=True)
async def test_a_pod_deleted_by_pod_gc_does_not_end_with_its_init_container(furnished: Stage) -> None:
    stage = furnished
    await stage.product.start()
    pod = await created(stage, node("taken"), "collected")
    uid, started = pod["metadata"]["uid"], container_state(pod, "running")["startedAt"]
    init = {"name": "init", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
    state = {"terminated": {"exitCode": 0, "startedAt": started, "finishedAt": started}}
    status = {"initContainerStatuses": [init | {"state": state}]}
    await stage.api.patch("/api/v1/namespaces/training/pods/collected/status", {"status": status})
    await asyncio.sleep(3)  # separates the end of the init container from the end of the pod

    gone = await deleted(stage, "/api/v1/nodes/taken")
    await stage.pods(lambda items: named(items, "collected") is None, within=120)  # PodGC waits for 40 s

    [(end_us, end_by, gap_us)] = await stage.product.query_until(ENDS.format(uid=uid), lambda rows: bool(rows[0][0]))
    assert end_us in gone
    assert (end_by, gap_us) == ("node", None)
    assert end_us / 10**6 >= seconds(started) + 2


async def test_a_node_and_pod_that_existed_only_during_downtime_are_accounted_to_the_second(furnished: Stage) -> None:
    stage = furnished
    await created(stage, node("old"), "lasting")
    await stage.product.start()
    await stage.product.until(lambda samples: total(samples, "gputally_allocated_gpus") == 1)
    await stage.product.kill()

    await stage.api.delete("/api/v1/namespaces/training/pods/lasting")
    await stage.pods(lambda items: not items)
    await stage.api.delete("/api/v1/nodes/old")
    passing = await created(stage, node("new"), "passing", run_for="2s")
    await stage.api.delete("/api/v1/namespaces/training/pods/passing")
    await stage.pods(lambda items: not items)
    await stage.api.delete("/api/v1/nodes/new")
    await stage.product.start()

    held = await stage.product.query_until(HELD.format(uid=passing["metadata"]["uid"]), lambda rows: bool(rows[0][1]))
    samples = await stage.product.released()
    await stage.recorder.complete()
    assert held == [(1, "NVIDIA-A100-SXM4-80GB")]
    assert stage.product.bill() == stage.recorder.bill(teams={"training": "red"}, per_gpu_hour=PRICE)
    assert stage.product.gap() == {}
    assert total(samples, "gputally_watch_listings_total", resource="nodes") == 0


async def test_a_node_that_registers_again_keeps_its_pods(furnished: Stage) -> None:
    stage = furnished
    await watched_on_its_machine(stage, "kept")

    await stage.api.delete("/api/v1/nodes/same")
    await stage.product.until(lambda samples: total(samples, "gputally_capacity_gpus", state="free") == 0)
    await created(stage, node("same", machine=MACHINE, gpus=2))

    samples = await stage.product.until(lambda samples: total(samples, "gputally_capacity_gpus", state="free") == 1)
    assert total(samples, "gputally_allocated_gpus") == 1
    assert total(samples, "gputally_overcommitted_gpus") == 0
    assert total(samples, "gputally_reconciliation_difference_gpu_seconds") == 0
    anew = "SELECT node_uid, continues FROM reregistrations"
    [(uid, before)] = await stage.product.query_until(anew, lambda rows: len(rows) == 1)
    assert {uid, before} == {row[0] for row in stage.product.query("SELECT DISTINCT node_uid FROM capacity")}


async def test_another_machine_under_the_same_name_is_free(furnished: Stage) -> None:
    stage = furnished
    await watched_on_its_machine(stage, "lost")

    await stage.api.delete("/api/v1/nodes/same")
    await created(stage, node("same", machine="another", gpus=2))

    samples = await stage.product.until(lambda samples: total(samples, "gputally_capacity_gpus", state="free") == 2)
    assert total(samples, "gputally_allocated_gpus") == 0
