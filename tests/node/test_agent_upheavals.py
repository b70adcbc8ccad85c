"""What the agent and the aggregator know stays true while kubelet, agent and GPUs come and go."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from fractions import Fraction

import pytest

from gputally.model.units import GPU, GPU_SECOND, US_PER_SECOND
from gputally.model.usage import AssignmentReport, UsageReport
from tests.behaviour.product import Samples, total
from tests.behaviour.recorder import until
from tests.behaviour.scrapes import Scrapes
from tests.cluster.manifests import path
from tests.cluster.objects import container_state, seconds
from tests.node.agent import assignments_of, gpu_of, measured_by, used_by
from tests.node.gpus import steps
from tests.node.node import MIG_1G, SHARED_GPU, uuids
from tests.node.scene import CLOSE, Scene, assert_close
from tests.nvml.script import Xid

pytestmark = pytest.mark.node
logger = logging.getLogger(__name__)

MIG_3G = "nvidia.com/mig-3g.40gb"
FLAT = 64
XID = 48
LATE_US = 3 * US_PER_SECOND
"""Once a second the agent reads, and once a second it is asked."""
UP = "gputally_gpu_up"
INFO = "gputally_gpu_info"
XIDS = "gputally_gpu_xid_events_total"
UNKNOWN = "gputally_agent_unknown_devices"
STATE = "gputally_gpu_state_gpu_seconds_total"
POLLS = "gputally_agent_kubelet_polls_total"
RESTARTS = "gputally_agent_restarts_total"
FAULTS = "gputally_usage_faults_total"
HELD = "gputally_allocated_gpus"
FREE = "gputally_capacity_gpus"
EPOCHS = """
SELECT h.epoch, h.since_us, sum(u.measured), sum(u.used)
FROM usage_assignments h JOIN usage_hours u ON u.assignment = h.assignment
WHERE h.namespace = '{place}' AND h.device = '{device}' GROUP BY h.epoch, h.since_us ORDER BY h.since_us
"""


async def test_a_kubelet_that_is_restarted_ends_nobody(scene: Scene) -> None:
    pods = [await scene.run("steadfast", gpus=2), await scene.run("part", gpus=1, resource=SHARED_GPU)]
    report = await scene.held(*pods, count=3)
    before = [assignment for pod in pods for assignment in assignments_of(report, pod)]
    for down_s in (0, 3):
        killed_us = scene.gpus.now_us
        scene.node.kubelet.kill()
        await asyncio.sleep(down_s)
        await scene.node.kubelet.start()
        logger.info("the kubelet was gone for %.2f s", (scene.gpus.now_us - killed_us) / US_PER_SECOND)
        await asked_again(scene, 7)

    samples = await scene.agent.scrape()
    report = await scene.end(*pods)
    booked = await scene.booked(report, *pods)
    assert total(samples, POLLS, outcome="unreachable") > 1
    assignments = [assignment for pod in pods for assignment in assignments_of(report, pod)]
    assert [(each.device, each.since_us) for each in assignments] == [(each.device, each.since_us) for each in before]
    for pod in pods:
        name, each = pod["metadata"]["name"], assignments_of(report, pod)
        assert measured_by(each) == pytest.approx(sum(map(lasted, each)), rel=CLOSE)
        assert_close(name, used_by(each), sum(map(scene.due, each), Fraction(0)))
        assert booked[name].used == used_by(each)


async def test_a_kubelet_that_registers_anew_keeps_its_pods(scene: Scene) -> None:
    pod = await scene.run("kept", gpus=2)
    started = seconds(container_state(pod, "running")["startedAt"])
    await until(lambda: time.time() > started + 1, within=5)  # the API tells births to the second
    node = f"/api/v1/nodes/{scene.node.name}"
    before = await scene.api.get(node)
    free = total(await scene.product.until(lambda samples: total(samples, HELD) == 2), FREE, state="free")
    scene.node.kubelet.kill()
    await scene.api.delete(node)
    await scene.product.until(lambda samples: total(samples, FREE, state="free") == 0)
    await scene.node.kubelet.start()
    await scene.node.ready()

    after = await scene.api.get(node)
    samples = await scene.product.until(lambda samples: total(samples, FREE, state="free") == free)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["status"]["nodeInfo"]["systemUUID"] == before["status"]["nodeInfo"]["systemUUID"] != ""
    assert total(samples, HELD) == 2
    assert total(samples, "gputally_overcommitted_gpus") == 0
    kept = await scene.api.get(path(pod))
    assert container_state(kept, "running") == container_state(pod, "running")
    await scene.end(pod)
    segments = await scene.segments(pod)
    assert [each.end_us for each in segments[:-1]] == [each.start_us for each in segments[1:]]
    assert {each.quantity for each in segments} == {2 * GPU}
    born_us = seconds(after["metadata"]["creationTimestamp"]) * US_PER_SECOND
    assert segments[0].start_us < born_us < (segments[-1].end_us or 0)


async def test_an_agent_that_is_killed_loses_what_it_had_not_told(scene: Scene) -> None:
    pod = await scene.run("survivor", gpus=1)
    [before] = assignments_of(await scene.held(pod, count=1), pod)
    first = await scene.agent.report()
    restarts = total(await scene.product.scrape(), RESTARTS)
    async with watched(scene) as scrapes:
        await asyncio.sleep(8)

        killed_us = scene.gpus.now_us
        scene.agent.kill()
        await asyncio.sleep(2)
        await scene.agent.start()

        await scene.held(pod, count=1)
        await asyncio.sleep(6)
        report = await scene.end(pod)
        [after] = assignments_of(report, pod)
        query = EPOCHS.format(place=scene.place, device=before.device)
        lives = await scene.product.query_until(query, lambda rows: len(rows) == 2 and rows[1][-1] == used_by([after]))
    ends = [since_us + measured // GPU for _, since_us, measured, _ in lives]
    for (epoch, since_us, _, used), end_us in zip(lives, ends, strict=True):
        assert_close(f"survivor in {epoch}", used, scene.gpus.percent_us(before.device, since_us, end_us) * GPU / 100)
    logger.info("told up to %.1f s before the kill", (killed_us - ends[0]) / US_PER_SECOND)
    assert [(epoch, since_us) for epoch, since_us, *_ in lives] == [
        (first.epoch, before.since_us),
        (report.epoch, after.since_us),
    ]
    assert 0 <= killed_us - ends[0] <= LATE_US
    assert killed_us < after.since_us
    await scene.published(pod, sum(used for *_, used in lives))
    samples = await scene.product.scrape()
    assert total(samples, RESTARTS) == restarts + 1
    assert total(samples, FAULTS) == 0
    assert scrapes.count > 20
    assert scrapes.falls == []


async def test_a_gpu_that_is_lost_stands_still_alone(scene: Scene) -> None:
    pods = unlucky, other = [await scene.run(name, gpus=1) for name in ("unlucky", "other")]
    report = await scene.held(*pods, count=2)
    [assignment], [neighbour] = (assignments_of(report, pod) for pod in pods)
    lost_before = total(await scene.agent.scrape(), STATE, gpu=assignment.gpu, state="lost")
    await told_of(scene, assignment.gpu, scene.gpus.go_on(assignment.gpu, (0, FLAT)) + 3 * US_PER_SECOND)

    scene.gpus.change(assignment.gpu, lost=scene.gpus.now)

    await scene.shown(lambda samples: down(samples) == {assignment.gpu})
    at_first = await scene.agent.report()
    later = await told_of(scene, neighbour.gpu, gpu_of(at_first, neighbour.gpu).watermark_us + 3 * US_PER_SECOND)
    assert gpu_of(later, assignment.gpu).lost
    assert used_by(assignments_of(later, unlucky)) == used_by(assignments_of(at_first, unlucky)) > 0
    assert used_by(assignments_of(later, other)) > used_by(assignments_of(at_first, other))
    scene.gpus.change(assignment.gpu, lost=None)
    await scene.shown(lambda samples: not down(samples))
    await told_of(scene, assignment.gpu, scene.gpus.now_us + 3 * US_PER_SECOND)
    lost = total(await scene.agent.scrape(), STATE, gpu=assignment.gpu, state="lost") - lost_before
    report = await scene.end(*pods)
    booked = await scene.booked(report, *pods)
    [assignment], [neighbour] = (assignments_of(report, pod) for pod in pods)
    gap = lasted(assignment) - measured_by([assignment])
    logger.info("lost for %.3f s, not measured for %.3f s", lost, gap / GPU_SECOND)
    assert lost * GPU_SECOND <= gap <= (lost + 2) * GPU_SECOND
    assert_close("unlucky", used_by([assignment]), scene.due(assignment) - Fraction(gap * FLAT, 100))
    assert_close("other", used_by([neighbour]), scene.due(neighbour))
    assert [booked[each.pod].used for each in (assignment, neighbour)] == [
        used_by([each]) for each in (assignment, neighbour)
    ]


async def test_an_error_of_the_driver_is_counted_once(scene: Scene) -> None:
    gpu = scene.node.whole_gpus[2]
    scene.gpus.change(gpu, xids=[Xid(at=scene.gpus.now + 1, code=XID)])

    await scene.shown(lambda samples: xids(samples) == {(gpu, str(XID)): 1})

    await told_of(scene, gpu, scene.gpus.now_us + 3 * US_PER_SECOND)
    assert xids(await scene.agent.scrape()) == {(gpu, str(XID)): 1}


async def test_a_gpu_is_cut_anew_beside_a_pod_that_runs_on(scene: Scene) -> None:
    steady = await scene.run("steady", gpus=1, resource=MIG_1G)
    [assignment] = assignments_of(await scene.held(steady, count=1), steady)
    cut = scene.gpus.gpus[assignment.gpu].mig
    [kept], [gone] = ([mig for mig in cut if (mig.uuid == assignment.device) is is_kept] for is_kept in (True, False))
    large = replace(
        gone, uuid=uuids("MIG", 3)[2], gi=2, profile="3g.40gb", gi_slices=3, ci_slices=3, curve=[*steps(33)]
    )

    scene.gpus.change(assignment.gpu, mig=[kept, large])
    scene.node.plugin.offer(MIG_1G, [kept.uuid])
    scene.node.plugin.offer(MIG_3G, [large.uuid])

    newcomer = await scene.run("newcomer", gpus=1, resource=MIG_3G)
    await scene.held(newcomer, count=1)
    await asyncio.sleep(12)
    samples = await scene.agent.scrape()
    report = await scene.end(steady, newcomer)
    scene.node.plugin.offer(MIG_3G, [])
    assert {
        dict(labels)["device"]
        for (name, labels) in samples
        if name == INFO and (assignment.gpu in dict(labels).values())
    } == {kept.uuid, large.uuid}
    assert total(samples, UNKNOWN) == 0
    booked = await scene.booked(report, steady, newcomer)
    for pod, device, share in ((steady, kept, GPU // 7), (newcomer, large, 3 * GPU // 7)):
        [assignment] = assignments_of(report, pod)
        assert (assignment.device, assignment.gpu, assignment.share) == (device.uuid, scene.node.sliced_gpu, share)
        assert measured_by([assignment]) == pytest.approx(lasted(assignment), rel=CLOSE)
        assert_close(assignment.pod, used_by([assignment]), scene.due(assignment))
        assert booked[assignment.pod].used == used_by([assignment])
        assert {segment.quantity for segment in await scene.segments(pod)} == {share}


@asynccontextmanager
async def watched(scene: Scene) -> AsyncIterator[Scrapes]:
    """All that the aggregator shows meanwhile."""
    scrapes = Scrapes(scene.product.url)
    watching = asyncio.create_task(scrapes.run())
    yield scrapes
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching


async def asked_again(scene: Scene, times: int) -> None:
    """Return once the kubelet has answered so many times more."""
    answers = total(await scene.agent.scrape(), POLLS, outcome="ok")
    await scene.shown(lambda samples: total(samples, POLLS, outcome="ok") >= answers + times)


async def told_of(scene: Scene, gpu: str, at_us: int) -> UsageReport:
    """A report that accounts the GPU up to that instant."""
    return await scene.told(lambda report: gpu_of(report, gpu).watermark_us > at_us)


def down(samples: Samples) -> set[str]:
    """The GPUs that do not answer."""
    return {dict(labels)["gpu"] for (name, labels), value in samples.items() if name == UP and not value}


def xids(samples: Samples) -> dict[tuple[str, str], float]:
    """How often each came that did, by GPU and error."""
    return {
        (dict(labels)["gpu"], dict(labels)["xid"]): value
        for (name, labels), value in samples.items()
        if name == XIDS and value
    }


def lasted(assignment: AssignmentReport) -> int:
    """µs·µGPU from its beginning to its end."""
    assert assignment.until_us
    return assignment.share * (assignment.until_us - assignment.since_us)
