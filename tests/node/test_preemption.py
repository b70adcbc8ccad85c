"""Preemptions on a real kubelet: exit codes, grace and termination messages are those that containers really have."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.behaviour.compared import KUBELET_S, Compared
from tests.behaviour.product import total
from tests.behaviour.recorder import Recorder
from tests.behaviour.true_preemptions import ON_SIGTERM, TruePreemptions
from tests.cluster.manifests import GPU, Json, deployment, job, path, priority_class
from tests.cluster.objects import Items, condition, container_state, in_phase, seconds
from tests.node.node import Node, eventually, node_pod
from tests.node.scene import Scene

pytestmark = pytest.mark.node

SAY = "echo gputally-checkpoint=$(date -u +%FT%TZ) > /dev/termination-log"
WORK = "while :; do sleep 1 & wait $!; done"
SAVES_AND_EXITS_WITH_0 = ("sh", "-c", f"trap '{SAY}; exit 0' TERM; {WORK}")
"""The practitioners' handler."""
SAVES_SLOWLY = ("sh", "-c", f"trap 'sleep 3; {SAY}; exit 0' TERM; {WORK}")
"""The same, for longer than the second after which the Job controller looks."""
SAVES_AND_DIES = ("sh", "-c", f"trap '{SAY}; exit 143' TERM; {WORK}")
DEAF = ("sh", "-c", f"trap '' TERM; sleep 2; {SAY}; echo saved; {WORK}")
"""It has saved once, before it is asked to stop."""
LOST = "gputally_preemption_lost_gpu_seconds_total"


@pytest.fixture
async def compared(scene: Scene) -> AsyncIterator[Compared]:
    async with Recorder(scene.api, fieldSelector=f"metadata.namespace={scene.place}") as recorder:
        yield Compared(scene.api, scene.place, product=scene.product, recorder=recorder)


async def test_s1_training_that_saves_and_exits_with_0_is_complete_only_for_jobs_that_wait(
    scene: Scene, compared: Compared
) -> None:
    await tiers(scene, {"training-low": 100, "inference-standard": 5_000})
    for number in range(8):
        policy = "Failed" if number % 2 else "TerminatingOrFailed"
        handler = SAVES_AND_EXITS_WITH_0 if number < 4 else SAVES_SLOWLY
        pod = of(scene, f"train-{number}", "training-low", command=handler, grace_seconds=30)
        await scene.api.create(job(pod, backoffLimit=3, podReplacementPolicy=policy))
    await running(scene, 8, "training-low")
    inference = await scene.api.create(deployment(of(scene, "inference", "inference-standard"), replicas=0))
    await asyncio.sleep(2)  # what starts and ends in the same second has no running time, and so no price

    await scene.api.patch(path(inference), {"spec": {"replicas": 6}})
    await running(scene, 6, "inference-standard")

    truth = await compared.truth()
    assert len(truth.victims) == 6
    for victim in truth.victims.values():
        assert (victim.ended["exitCode"], victim.saved()[1]) == (0, "termination-message")
        assert (victim.stopped or 0) - victim.requested >= (3 if victim.name[len("train-")] >= "4" else 0)
        assert victim.lost_gpu_seconds() < 3
    await compared.agrees(truth.rows())
    await compared.counted(truth)
    await early_completions_agree(scene, truth)


async def early_completions_agree(scene: Scene, truth: TruePreemptions) -> None:
    """The product calls early those Jobs that are complete; all of them lost their pod."""
    jobs = (await scene.api.list(f"/apis/batch/v1/namespaces/{scene.place}/jobs"))["items"]
    complete = {each["metadata"]["name"] for each in jobs if condition(each, "Complete").get("status") == "True"}
    lost = {each.labels["batch.kubernetes.io/job-name"] for each in truth.victims.values()}
    assert {name for name in lost if int(name[-1]) % 2} <= complete  # others, if they end before it looks
    assert complete <= lost
    outcomes = {each["metadata"]["name"]: "running" for each in jobs} | dict.fromkeys(complete, "completed_early")
    query = f"SELECT name, outcome FROM jobs WHERE namespace = '{scene.place}'"
    await scene.product.query_until(query, lambda rows: dict(rows) == outcomes)
    early = "gputally_jobs_ended_early_total"
    await scene.product.until(lambda samples: total(samples, early, tenant=scene.place) == len(complete))


async def test_s2_training_takes_the_gpus_of_interactive_and_batch_pods_once_the_last_has_stopped(
    scene: Scene, compared: Compared
) -> None:
    await tiers(scene, {"gpu-training": 1_000, "gpu-serving": 800, "gpu-batch": 400})
    await scene.api.create(priority_class(scene.tier("gpu-interactive"), 200, preempts=False))
    for number in range(2):
        notebook = of(scene, f"notebook-{number}", "gpu-interactive", command=DEAF, grace_seconds=4)
        await scene.api.create(notebook)
    batch = of(scene, "batch", "gpu-batch", command=SAVES_AND_DIES, grace_seconds=30)
    await scene.api.create(job(batch, parallelism=4))
    await scene.api.create(deployment(of(scene, "serve", "gpu-serving"), replicas=2))
    for tier, number in (("gpu-interactive", 2), ("gpu-batch", 4), ("gpu-serving", 2)):
        await running(scene, number, tier)
    await asyncio.sleep(2)  # as in S1: a pod that ends in the second of its start has no price

    await scene.api.create(job(of(scene, "ddp", "gpu-training", gpus=6)))
    await running(scene, 1, "gpu-training")

    truth = await compared.truth()
    training, interactive, batch_tier = map(scene.tier, ("gpu-training", "gpu-interactive", "gpu-batch"))
    assert truth.matrix() == {(interactive, training): 2, (batch_tier, training): 4}
    codes = {(each.tier, each.ended["exitCode"]) for each in truth.victims.values()}
    assert codes == {(interactive, 137), (batch_tier, 143)}
    rows = truth.rows()
    last = max(row["stopped"] for row in rows.values())
    assert all(row["reused"] >= last for row in rows.values())
    await compared.agrees(rows)
    samples = await compared.counted(truth)
    for tier in (interactive, batch_tier):
        lost = sum(each.lost_gpu_seconds() for each in truth.victims.values() if each.tier == tier)
        assert total(samples, LOST, victim_tier=tier) == pytest.approx(lost, abs=1e-6)


async def test_s4_a_deaf_pod_of_four_gpus_is_killed_after_its_grace_for_a_pod_of_one(
    scene: Scene, compared: Compared
) -> None:
    """It declares to save on SIGTERM, but exit code 137 shows that it had not finished."""
    await tiers(scene, {"training-low": 100, "training-high": 1_000, "inference": 10_000})
    saves = {ON_SIGTERM: "true"}
    for tier in ("training-low", "training-high"):
        deaf = of(scene, tier, tier, gpus=4, command=DEAF, grace_seconds=4, annotations=saves)
        await scene.api.create(job(deaf))
    for tier in ("training-low", "training-high"):
        [pod] = await running(scene, 1, tier)
        await saved(scene.node, pod)

    await scene.api.create(of(scene, "serve", "inference"))
    await running(scene, 1, "inference")

    truth = await compared.truth()
    [victim] = truth.victims.values()
    assert (victim.tier, victim.ended["exitCode"], victim.saved()[1]) == (
        scene.tier("training-low"),
        137,
        "termination-message",
    )
    [row] = await compared.agrees(truth.rows())
    assert row["stop_seconds"] >= 4
    assert row["gpus"] == 4
    samples = await compared.counted(truth)
    assert total(samples, LOST, victim_tier=victim.tier) == pytest.approx(victim.lost_gpu_seconds(), abs=1e-6)
    assert len([uuid for held in scene.node.held().values() for uuid in held[GPU]]) == 5  # three are stranded


async def test_a_kubelet_that_does_not_answer_leaves_a_victim_its_gpus_beyond_its_grace(
    scene: Scene, compared: Compared
) -> None:
    await tiers(scene, {"training": 100, "inference": 10_000})
    await scene.api.create(of(scene, "train", "training", gpus=8, grace_seconds=1))
    [pod] = await running(scene, 1, "training")
    scene.node.kubelet.kill()

    await scene.api.create(deployment(of(scene, "serve", "inference"), replicas=1))
    await scene.api.wait_for(path(of(scene, "train", "training")), is_leaving)
    await asyncio.sleep(1 + 2 * KUBELET_S)  # its grace is over
    await scene.node.kubelet.start()
    await running(scene, 1, "inference")

    truth = await compared.truth()
    [row] = await compared.agrees(truth.rows())
    assert row["id"] == pod["metadata"]["uid"]
    assert row["grace_exceeded_seconds"] > KUBELET_S
    await compared.counted(truth)


async def test_a_kubelet_that_makes_room_for_a_critical_pod_is_a_cause_of_its_own(
    scene: Scene, compared: Compared
) -> None:
    """Of CPU: a pod bound past the scheduler, which a kubelet admits all the same if it is critical."""
    await tiers(scene, {"training": 100})
    victim = await scene.api.create(with_cpu(of(scene, "train", "training", gpus=2), "1"))
    await running(scene, 1, "training")
    node = await scene.api.get(f"/api/v1/nodes/{scene.node.name}")
    critical: Json = {"nodeName": scene.node.name, "priorityClassName": "system-node-critical"}
    await scene.api.create(
        with_cpu(node_pod("critical", scene.place, **critical), node["status"]["allocatable"]["cpu"])
    )

    lost = await scene.api.wait_for(
        path(victim), lambda found: found is not None and found["status"]["phase"] == "Failed"
    )

    assert lost
    assert lost["status"]["reason"] == "Preempting"
    tier = scene.tier("training")
    truth = {
        "cause": "kubelet_admission",
        "is_certain": True,
        "decided": seconds(condition(lost, "DisruptionTarget")["lastTransitionTime"]),
        "requested": None,
        "stopped": seconds(container_state(lost, "terminated")["finishedAt"]),
        "tier": tier,
        "gpus": 2,
        "preemptor": None,
    }
    await compared.agrees({lost["metadata"]["uid"]: truth})
    ran = container_state(lost, "terminated")
    work = 2 * (seconds(ran["finishedAt"]) - seconds(ran["startedAt"]))
    samples = await scene.product.until(lambda found: total(found, LOST, victim_tier=tier) == work > 0)
    assert total(samples, "gputally_disruptions_total", tier=tier, cause="kubelet_admission") == 1
    assert total(samples, "gputally_preemptions_total", victim_tier=tier) == 0


def with_cpu(pod: Json, amount: str) -> Json:
    """The pod, which requests so much."""
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": amount}
    return pod


async def tiers(scene: Scene, values: dict[str, int]) -> None:
    for name, value in values.items():
        await scene.api.create(priority_class(scene.tier(name), value))


def of(scene: Scene, name: str, tier: str, *, gpus: int = 1, **others: Any) -> Json:  # noqa: ANN401 - as node_pod has them
    """A pod of a tier."""
    return node_pod(name, scene.place, gpus=gpus, priorityClassName=scene.tier(tier), **others)


async def running(scene: Scene, number: int, tier: str) -> Items:
    """The running pods of a tier that nobody deletes, once there are so many."""

    def live(items: Items) -> Items:
        own = (item for item in in_phase(items, "Running") if item["spec"]["priorityClassName"] == scene.tier(tier))
        return [item for item in own if not is_leaving(item)]

    pods = f"/api/v1/namespaces/{scene.place}/pods"
    return live(await scene.api.wait_for_items(pods, lambda items: len(live(items)) == number, within=60))


async def saved(node: Node, pod: Json) -> None:
    """Return once a DEAF pod has saved."""
    await eventually(lambda: node.output_of(pod) != "")


def is_leaving(pod: Json | None) -> bool:
    return pod is not None and "deletionTimestamp" in pod["metadata"]
