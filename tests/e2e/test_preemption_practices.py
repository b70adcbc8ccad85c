"""S1, S2 and S4 on the real scheduler: each record of a preemption is what the API server's objects say."""

import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.behaviour.product import total
from tests.behaviour.true_preemptions import ANNOTATION, INTERVAL, ON_SIGTERM, TruePod, TruePreemptions
from tests.cluster.api import Refused
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import (
    Json,
    conduct,
    deployment,
    job,
    path,
    pod_disruption_budget,
    priority_class,
    resource_quota,
)
from tests.cluster.objects import Items, condition, named
from tests.e2e.practice import Practice, practised
from tests.fakes.command import run

pytestmark = pytest.mark.e2e

S1_TIERS = {
    "inference-critical": 10_000,
    "inference-standard": 5_000,
    "training-high": 1_000,
    "training-standard": 500,
    "training-low": 100,
}
S2_TIERS = {"gpu-training": 1_000, "gpu-serving": 800, "gpu-batch": 400}
S4_TIERS = {"inference": 1_000, "training": 500, "inverted": 100}
SAVES = {ON_SIGTERM: "true"}
STEPS = ("request", "stop", "reuse", "replace")
STEP_COUNT = "gputally_preemption_step_seconds_count"
LOST = "gputally_preemption_lost_gpu_seconds_total"


@pytest.fixture
async def practice(control_plane: ControlPlane, place: str, tmp_path: Path) -> AsyncIterator[Practice]:
    async with practised(control_plane, place, tmp_path) as practice:
        yield practice


async def test_s1_inference_takes_six_gpus_of_training_whose_handler_exits_with_0(practice: Practice) -> None:
    """With the critical tier on top, of which preemption breaks the budget of the standard one."""
    await practice.furnish(S1_TIERS, nodes=8)
    training, inference = await practice.tenant("ml-training"), await practice.tenant("ml-inference")
    for number in range(8):
        await practice.api.create(night_job(practice, training, number))
    await practice.running(8, "training-low")
    serving = {name: await inference_of(practice, inference, name) for name in ("standard", "critical")}
    budget = await practice.api.create(
        pod_disruption_budget("inference", inference, labels={"app": "standard"}, min_available=2)
    )

    await practice.scale(serving["standard"], 6)
    await practice.running(6, "inference-standard")
    await practice.scale(serving["critical"], 7)
    await practice.running(7, "inference-critical")

    truth = await practice.truth()
    tier = practice.tier
    assert truth.matrix() == {
        (tier("training-low"), tier("inference-standard")): 6,
        (tier("training-low"), tier("inference-critical")): 2,
        (tier("inference-standard"), tier("inference-critical")): 5,
    }
    assert (await practice.api.get(path(budget)))["status"]["currentHealthy"] < 2
    await practice.agrees(truth.rows())
    await practice.counted(truth)
    assert {each.ended["exitCode"] for each in truth.victims.values() if each.namespace == training} == {0}
    await outcomes_agree(practice, training)


def night_job(practice: Practice, team: str, number: int) -> Json:
    """Every other one waits for the end of its pods before it counts them."""
    policy = "Failed" if number % 2 else "TerminatingOrFailed"
    annotations = conduct(stop_after="2s", exit_on_term="0") | SAVES
    labels = {"workload-type": "training"}
    pod = practice.pod(f"train-{number}", "training-low", team=team, labels=labels, annotations=annotations)
    return job(pod, backoffLimit=3, podReplacementPolicy=policy)


async def inference_of(practice: Practice, team: str, tier: str) -> Json:
    """A Deployment without replicas."""
    labels = {"workload-type": "inference"}
    pod = practice.pod(tier, f"inference-{tier}", team=team, labels=labels)
    return await practice.api.create(deployment(pod, replicas=0))


async def outcomes_agree(practice: Practice, team: str) -> None:
    """What the product says of each Job is what its conditions say; all Jobs lost their pod."""
    jobs = (await practice.api.list(f"/apis/batch/v1/namespaces/{team}/jobs"))["items"]
    truth = {each["metadata"]["name"]: "completed_early" if is_complete(each) else "running" for each in jobs}
    complete = {name for name, outcome in truth.items() if outcome == "completed_early"}
    assert len(truth) == 8
    assert {f"train-{number}" for number in (1, 3, 5, 7)} <= complete  # others, if the Job controller is late
    await practice.product.query_until(
        f"SELECT name, outcome FROM jobs WHERE namespace = '{team}'", lambda rows: dict(rows) == truth
    )
    early = "gputally_jobs_ended_early_total"
    samples = await practice.product.until(
        lambda samples: total(samples, early, tenant=team, outcome="completed_early") == len(complete)
    )
    assert total(samples, early) == len(complete)


def is_complete(found: Json) -> bool:
    return condition(found, "Complete").get("status") == "True"


async def test_s2_four_tiers_with_quotas_preempt_as_their_priorities_say(
    practice: Practice, control_plane: ControlPlane
) -> None:
    await practice.furnish(S2_TIERS, nodes=3, gpus=4)
    await practice.api.create(priority_class(practice.tier("gpu-interactive"), 200, preempts=False))
    alpha = await practice.tenant("tenant-alpha")
    for tier, hard in (("gpu-training", 6), ("gpu-interactive", 2)):
        await practice.api.create(resource_quota(tier, alpha, gpus=hard, priority_class=practice.tier(tier)))
    await fill_with_lower_tiers(practice, alpha)

    await practice.api.create(practice.pod("notebook-2", "gpu-interactive", team=alpha))
    await refused(practice, "notebook-2", "not eligible due to preemptionPolicy=Never")
    await practice.api.create(practice.pod("large", "gpu-training", team=alpha, gpus=6))
    await refused(practice, "large", "Insufficient nvidia.com/gpu")
    assert not practice.recorder.victims()
    await practice.api.delete(f"/api/v1/namespaces/{alpha}/pods/large")
    await practice.api.create(deployment(practice.pod("serve", "gpu-serving", team=alpha, gpus=2)))
    await practice.running(1, "gpu-serving")
    await practice.api.create(job(practice.pod("ddp", "gpu-training", team=alpha, gpus=2), parallelism=3))
    await practice.running(3, "gpu-training")
    with pytest.raises(Refused, match="exceeded quota: gpu-training"):
        await practice.api.create(practice.pod("more", "gpu-training", team=alpha))

    truth = await practice.truth()
    assert sum(truth.matrix().values()) == 6
    waiting = {"is_lost_final": False}  # what becomes of the Job without these pods is open
    expected = {
        uid: row | (waiting if truth.victims[uid].tier.endswith("-batch") else {}) for uid, row in truth.rows().items()
    }
    await practice.agrees(expected)
    await practice.counted(truth)
    observed = {pair for pair in truth.matrix() if pair[0] != "none"}  # these have the lowest priority, 0
    assert observed <= await permitted(control_plane)


async def fill_with_lower_tiers(practice: Practice, team: str) -> None:
    """Pairs of GPUs for batch pods, and a pod for each of the rest; those without a class have the priority 0."""
    await practice.api.create(job(practice.pod("batch", "gpu-batch", team=team, gpus=2), parallelism=4))
    await practice.running(4, "gpu-batch")
    await practice.api.create(practice.pod("notebook-1", "gpu-interactive", team=team))
    for number in range(3):
        await practice.api.create(practice.pod(f"forgetful-{number}", "", team=team))
    await practice.running(3, "")
    await practice.running(1, "gpu-interactive")


async def refused(practice: Practice, name: str, why: str) -> None:
    """Wait until the scheduler says of a pod why it is pending."""

    def is_refused(items: Items) -> bool:
        found = named(items, name)
        return found is not None and why in condition(found, "PodScheduled").get("message", "")

    await practice.pods(is_refused)


async def permitted(control_plane: ControlPlane) -> set[tuple[str, str]]:
    """Victim and preemptor tiers by the posture of the cluster."""
    done = await run("posture", "--kubeconfig", control_plane.kubeconfig("admin"), "--output", "json")
    preemptions = json.loads(done.out)["preemptions"]
    return {(victim, each["name"]) for each in preemptions for victim in each["may_preempt"]}


async def test_s4_a_pod_of_one_gpu_destroys_the_work_of_four_and_inverted_inference_never_runs(
    practice: Practice,
) -> None:
    ways: dict[str, dict[str, str]] = {"stated": {}, "declared": {INTERVAL: "10m"}, "unknown": {}}
    await practice.furnish(S4_TIERS, nodes=0)
    for name, annotations in ways.items():
        await practice.node(name, gpus=4)
        await practice.api.create(hours_of_training(practice, name, annotations))
    [stated] = [pod for pod in await practice.running(3, "training") if pod["metadata"]["labels"]["job"] == "stated"]
    await practice.api.create(practice.pod("inverted", "inverted"))
    await refused(practice, "inverted", "No preemption victims found for incoming pod")
    assert not practice.recorder.victims()
    await practice.api.delete(f"/api/v1/namespaces/{practice.place}/pods/inverted")  # it would take a stranded GPU
    now = datetime.now(UTC).isoformat(timespec="seconds")
    await practice.api.patch(pod_path(stated), {"metadata": {"annotations": {ANNOTATION: now}}})

    for name in ways:
        await practice.api.create(practice.pod(f"serve-{name}", "inference", nodeSelector=practice.on(name)))
    await practice.running(3, "inference")
    for name in ways:
        await practice.node(f"more-{name}", gpus=4)
    await practice.running(3, "training")

    truth = await practice.truth()
    expected = {uid: row | replaced(truth, truth.victims[uid]) for uid, row in truth.rows().items()}
    assert sorted(row["lost_basis"] for row in expected.values()) == ["annotation", "interval", "start"]
    assert min(row["stop_seconds"] for row in expected.values()) >= 6
    await practice.agrees(expected)
    samples = await practice.counted(truth)
    assert {step: number for step in STEPS if (number := total(samples, STEP_COUNT, step=step)) != 3} == {}
    for basis in ("annotation", "interval", "start"):
        [lost] = [each.lost_gpu_seconds() for each in truth.victims.values() if each.saved()[1] == basis]
        assert total(samples, LOST, victim_tier=practice.tier("training"), basis=basis) == pytest.approx(lost, abs=1e-6)


def hours_of_training(practice: Practice, name: str, annotations: Mapping[str, str]) -> Json:
    """A Job of 4 GPUs, for any node of the practice."""
    stop = conduct(stop_after="6s")
    pod = practice.pod(name, "training", gpus=4, labels={"job": name}, annotations=stop | dict(annotations))
    return job(pod, backoffLimit=6)


def replaced(truth: TruePreemptions, victim: TruePod) -> Json:
    """The columns of its replacement, of which there is one."""
    [pod] = truth.replacements(victim.labels["batch.kubernetes.io/job-name"])
    assert pod.started is not None
    return {
        "replacement_uid": pod.uid,
        "replaced": pod.started,
        "replace_seconds": pod.started - victim.decided,
        "job_kind": "Job",
        "job": victim.labels["job"],
    }


def pod_path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
