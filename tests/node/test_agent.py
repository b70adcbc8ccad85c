"""The agent on a real kubelet: what GPUs do goes to the pods that hold them, in its own books and the aggregator's."""

import asyncio
import logging
import os
from collections.abc import Sequence
from fractions import Fraction

import pytest

from gputally.model.units import GPU, GPU_SECOND, US_PER_SECOND
from gputally.model.usage import AssignmentReport
from tests.behaviour.product import Samples, total
from tests.cluster.manifests import Json, path
from tests.cluster.objects import condition, container_state, seconds
from tests.node.agent import assignments_of, gpu_of, measured_by, used_by
from tests.node.node import MIG_1G, SHARED_GPU, node_pod
from tests.node.pods import deleted, deletion_asked_s, forms, process_of, running, waits_for
from tests.node.scene import ALLOCATED, CLOSE, CONTAINER_USED, Scene, assert_close, total_of
from tests.nvml.script import MIB, Process

pytestmark = pytest.mark.node
logger = logging.getLogger(__name__)

MEASURED_S = 18
"""Longer than a pod must be there before both sides are compared."""
LATE_S = 3
"""Each second the kubelet is asked; the API's times are cut to the second."""
GRACE_S = 5
CONTAINER_MEMORY = "gputally_container_gpu_memory_bytes"
UNATTRIBUTED = "gputally_gpu_unallocated_used_gpu_seconds_total"
UNMATCHED = "gputally_unmatched_usage_gpu_seconds_total"
DIFFERENCE = "gputally_allocation_difference_gpus"


async def test_each_pod_used_what_its_devices_were_busy(scene: Scene) -> None:
    pods = [
        await scene.run("one", gpus=1),
        await scene.run("two", gpus=2),
        await scene.run("rest", gpus=5),
        await scene.run("left", gpus=1, resource=SHARED_GPU),
        await scene.run("right", gpus=1, resource=SHARED_GPU),
        await scene.run("slice", gpus=1, resource=MIG_1G),
    ]
    await asyncio.sleep(MEASURED_S)
    at_rest = await scene.product.scrape()

    report = await scene.end(*pods)

    samples = await scene.agent.scrape()
    booked = await scene.booked(report, *pods)
    every = [assignment for pod in pods for assignment in assignments_of(report, pod)]
    assert [assignment.share for assignment in every] == [*(8 * [GPU]), GPU // 4, GPU // 4, GPU // 7]
    for pod in pods:
        name, assignments = pod["metadata"]["name"], assignments_of(report, pod)
        due = sum((scene.due(each, sharers(each, every)) for each in assignments), Fraction(0))
        assert_close(name, used_by(assignments), due)
        assert {each.pod_uid for each in assignments} == {booked[name].uid} == {pod["metadata"]["uid"]}
        assert (booked[name].measured, booked[name].used) == (measured_by(assignments), used_by(assignments))
        exported = total(samples, CONTAINER_USED, namespace=scene.place, pod=name)
        assert exported == pytest.approx(used_by(assignments) / GPU_SECOND)
        await scene.published(pod, used_by(assignments))
        assert_lasted(assignments, await deleted(scene.api, pod))
    assert {value for (name, _), value in at_rest.items() if name == DIFFERENCE} == {0}
    assert total(await scene.product.scrape(), UNMATCHED) == 0


async def test_a_shared_gpu_is_divided_by_what_the_processes_did(scene: Scene) -> None:
    shared = scene.node.shared_gpu
    await told_of(scene, shared, scene.gpus.go_on(shared, (0, 0)))
    pods = [await scene.run(name, gpus=1, resource=SHARED_GPU) for name in ("busy", "modest")]
    before = total(await scene.agent.scrape(), UNATTRIBUTED, gpu=shared)
    since = scene.gpus.now
    works = zip((*map(process_of, pods), os.getpid()), (45, 15, 20), strict=True)  # the last one is of no pod
    processes = [Process(pid=pid, curve=[(since, percent)], memory_mib=100 * percent) for pid, percent in works]
    scene.gpus.change(shared, processes=processes)

    begin_us = scene.gpus.go_on(shared, (0, 0), (3, 80), (13, 0))

    await scene.shown(lambda samples: memory_of(samples, scene.place) == {"busy": 4500 * MIB, "modest": 1500 * MIB})
    await told_of(scene, shared, begin_us + 14 * US_PER_SECOND)
    report = await scene.end(*pods)
    unattributed = total(await scene.agent.scrape(), UNATTRIBUTED, gpu=shared) - before
    booked = await scene.booked(report, *pods)
    for pod, percent in zip(pods, (45, 15), strict=True):
        [assignment] = assignments_of(report, pod)
        due = scene.gpus.percent_us(shared, assignment.since_us, assignment.until_us or 0) * GPU / 100 * percent / 80
        assert_close(assignment.pod, used_by([assignment]), due)
        assert booked[assignment.pod].used == used_by([assignment])
    logger.info("of no pod: used %.3f GPU-s", unattributed)
    assert unattributed == pytest.approx(10 * 0.20, rel=CLOSE)


async def test_a_pod_that_lacks_its_image_is_charged_as_starting(scene: Scene) -> None:
    manifest = node_pod("stuck", scene.place, gpus=1, image="127.0.0.1:1/absent:e2e")  # nobody listens there
    manifest["spec"]["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    stuck = await scene.create(manifest)
    await scene.api.wait_for(path(stuck), lambda found: waits_for(found) == "ImagePullBackOff")
    [assignment] = assignments_of(await scene.held(stuck, count=1), stuck)
    tier = scene.tier("stuck")
    await scene.product.until(lambda samples: total(samples, ALLOCATED, tier=tier, state="starting") > GRACE_S)

    report = await scene.end(stuck)

    gone = await deleted(scene.api, stuck)
    bound_s = seconds(condition(gone, "PodScheduled")["lastTransitionTime"])
    segments = await scene.segments(stuck)
    logger.info("stuck: %s", segments)
    assert assignment.until_us is None
    assert segments[0].state == "starting"
    assert segments[0].start_us == bound_s * US_PER_SECOND
    assert {segment.state for segment in segments} <= {"starting", "terminating"}
    assert total_of(segments, "terminating") <= GPU * LATE_S * US_PER_SECOND
    [assignment] = assignments_of(report, stuck)
    assert assignment.until_us
    assert 0 <= assignment.since_us / US_PER_SECOND - bound_s <= LATE_S
    assert abs(assignment.until_us - (segments[-1].end_us or 0)) <= LATE_S * US_PER_SECOND


async def test_a_preempted_pod_is_charged_for_its_grace_as_terminating(scene: Scene) -> None:
    victim = await scene.run("training", gpus=8, grace_seconds=GRACE_S)
    await scene.held(victim, count=8)
    await asyncio.sleep(2)  # the API's times are cut to the second

    inference = await scene.create(node_pod("inference", scene.place, gpus=2), priority=10_000)

    life = await forms(scene.api, victim)
    gone, asked_s = life[-1], deletion_asked_s(life)
    await running(scene.api, inference)
    report = await scene.over(victim)
    ended_s = seconds(container_state(gone, "terminated")["finishedAt"])
    assert condition(gone, "DisruptionTarget")["reason"] == "PreemptionByScheduler"
    assert ended_s - asked_s >= GRACE_S - 1
    grace = 8 * GPU * (ended_s - asked_s) * US_PER_SECOND
    segments = await scene.segments(victim)
    logger.info("training: %s", segments)
    assert total_of(segments, "running") > 0
    assert total_of(segments, "terminating") == grace
    await scene.product.until(lambda samples: terminating(samples, scene.tier("training")) == grace / GPU_SECOND)
    assignments = assignments_of(report, victim)
    assert_lasted(assignments, gone)
    assert len(assignments) == 8
    assert_close("training", used_by(assignments), sum(map(scene.due, assignments), Fraction(0)))
    assert (await scene.booked(report, victim))["training"].used == used_by(assignments)
    successors = assignments_of(await scene.held(inference, count=2), inference)
    assert {each.device for each in successors} < {each.device for each in assignments}
    assert min(each.since_us for each in successors) >= max(each.until_us or 0 for each in assignments)


async def told_of(scene: Scene, gpu: str, at_us: int) -> None:
    """Return once the agent has accounted the GPU up to that instant."""
    await scene.told(lambda report: gpu_of(report, gpu).watermark_us > at_us)


def memory_of(samples: Samples, namespace: str) -> dict[str, float]:
    """Of each pod of that namespace."""
    found = {}
    for (name, labels), value in samples.items():
        given = dict(labels)
        if name == CONTAINER_MEMORY and given["namespace"] == namespace:
            found[given["pod"]] = value
    return found


def terminating(samples: Samples, tier: str) -> float:
    return total(samples, ALLOCATED, tier=tier, state="terminating")


def sharers(assignment: AssignmentReport, every: Sequence[AssignmentReport]) -> Sequence[AssignmentReport]:
    """Who else holds the device."""
    return [each for each in every if each.device == assignment.device and each is not assignment]


def assert_lasted(assignments: Sequence[AssignmentReport], gone: Json) -> None:
    """From its binding to the end of its container a pod held its devices, as the agent saw it."""
    bound_s = seconds(condition(gone, "PodScheduled")["lastTransitionTime"])
    ended_s = seconds(container_state(gone, "terminated")["finishedAt"])
    for assignment in assignments:
        assert assignment.until_us
        late = assignment.since_us / US_PER_SECOND - bound_s, assignment.until_us / US_PER_SECOND - ended_s
        logger.info("%s: seen %.1f s after its binding, gone %.1f s after its end", assignment.pod, *late)
        assert 0 <= late[0] <= LATE_S
        assert 0 <= late[1] <= LATE_S
