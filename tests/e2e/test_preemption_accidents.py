"""What goes wrong around preemptions on the real scheduler: gangs, retries, deaf victims, crowds and lost Events."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from tests.behaviour.compared import KUBELET_S, by_tiers
from tests.behaviour.product import total
from tests.behaviour.true_preemptions import ANNOTATION, ON_SIGTERM, TruePod, TruePreemptions, hours, loss, lost_at
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import Json, conduct, deployment, job, namespace, path
from tests.cluster.objects import condition
from tests.e2e.conftest import vacate
from tests.e2e.practice import Practice, documented_rights, practised
from tests.e2e.rights import bind, revoke

pytestmark = pytest.mark.e2e

logger = logging.getLogger(__name__)

TIERS = {"training": 100, "urgent": 1_000}
GANG = 8
CROWD = 100
EARLY = "gputally_jobs_ended_early_total"
LOST = "gputally_preemption_lost_gpu_seconds_total"
STALLED = "gputally_preemption_stalled_gpu_seconds_total"
_PREEMPTOR = ("preemptor_tier", "preemptor_namespace", "preemptor", "preemptor_uid", "is_preemptor_inferred")
NOBODY: Json = dict.fromkeys(_PREEMPTOR)


@pytest.fixture
async def practice(control_plane: ControlPlane, place: str, tmp_path: Path) -> AsyncIterator[Practice]:
    async with practised(control_plane, place, tmp_path) as practice:
        yield practice


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def blind(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Practice]:
    """Its aggregator may not read Events. One test begins with it and the last one ends: a minute lies between."""
    scratch, place = tmp_path_factory.mktemp("blind"), "e2e-blind"
    async with Api(control_plane.url, control_plane.token("admin"), control_plane.ca_file) as api:
        await api.create(namespace(place))
        async with practised(control_plane, place, scratch, without="events") as practice:
            yield practice
        await vacate(api, place)


@pytest.mark.asyncio(loop_scope="session")
async def test_without_its_event_a_preemption_is_recorded_and_waits_for_its_preemptor(blind: Practice) -> None:
    await lose_events(blind)

    truth = await blind.truth()
    assert len(truth.victims) == 4
    await blind.agrees({uid: row | NOBODY for uid, row in truth.rows().items()})
    samples, tier = await blind.product.scrape(), blind.tier("training")
    assert total(samples, "gputally_disruptions_total", cause="preemption", tier=tier) == 4
    assert by_tiers(samples, {tier}) == {}


async def test_a_gang_that_restarts_as_a_whole_loses_the_work_of_all_since_their_checkpoint(practice: Practice) -> None:
    """As a JobSet restarts: its Job fails with the first pod, and the controller, here the test, recreates it."""
    await practice.furnish(TIERS, nodes=GANG)
    labels = {"jobset.sigs.k8s.io/jobset-name": "gang"}
    attempts = [{**labels, "jobset.sigs.k8s.io/restart-attempt": str(number)} for number in range(2)]
    first = await practice.api.create(gang(practice, labels=attempts[0], backoffLimit=0))
    await saved_by_one_of(practice)

    await preempt(practice, "urgent")
    await practice.api.wait_for(path(first), lambda found: found is not None and is_failed(found))
    await practice.api.delete(path(first))
    await practice.pods(lambda items: not items)
    await practice.api.create(gang(practice, labels=attempts[1], backoffLimit=0))
    await practice.running(GANG, "training")

    truth = await practice.truth()
    [victim] = truth.victims
    old, new = (members(truth, labels) for labels in attempts)
    shared = [stated for pod in old for stated in pod.stated()]
    lost = sum(pod.lost_gpu_seconds(shared) for pod in old)
    started = min(pod.started for pod in new if pod.started is not None)
    assert (len(old), len(shared) > 0, lost >= 2 * GANG) == (GANG, True, True)
    row = truth.rows()[victim] | loss(lost) | {"lost_pods": GANG, "lost_basis": "annotation", "replaced": started}
    at = lost_at(old, gang=old)
    gang_of = {"job_kind": "JobSet", "job": "gang", "is_lost_upper_bound": False, "stalled_gpu_hours": 0}
    [told] = await practice.agrees({victim: row | at | gang_of})
    assert told["replacement_uid"] in {pod.uid for pod in new}
    samples = await practice.counted(truth)
    assert total(samples, LOST, basis="annotation") == total(samples, LOST) == pytest.approx(lost, abs=1e-6)
    assert total(samples, STALLED) == 0


async def test_the_seven_that_stay_wait_for_the_replacement_of_the_eighth(practice: Practice) -> None:
    """As those of a PyTorchJob: only the lost pod is recreated, by its Job ten seconds later."""
    await practice.furnish(TIERS, nodes=GANG)
    labels = {"training.kubeflow.org/job-name": "gang"}
    await practice.api.create(gang(practice, labels=labels, backoffLimit=6))
    await saved_by_one_of(practice)

    await preempt(practice, "urgent")
    await practice.running(GANG, "training")

    truth = await practice.truth()
    [uid], [replacement] = truth.victims, truth.replacements("gang")
    victim, shared = truth.victims[uid], [stated for pod in members(truth, labels) for stated in pod.stated()]
    assert victim.stopped is not None
    assert replacement.started is not None
    stalled = (GANG - 1) * (replacement.started - victim.stopped)
    assert stalled >= 5 * (GANG - 1)
    at = lost_at([victim], gang=members(truth, labels))
    row = truth.rows()[uid] | loss(victim.lost_gpu_seconds(shared)) | at
    followed = {"replaced": replacement.started, "replacement_uid": replacement.uid}
    gang_of = {"job_kind": "TrainingJob", "job": "gang", "lost_basis": "annotation", "is_lost_upper_bound": False}
    await practice.agrees({uid: row | followed | gang_of | {"stalled_gpu_hours": hours(stalled)}})
    samples = await practice.counted(truth)
    assert total(samples, STALLED) == pytest.approx(stalled, abs=1e-6)
    assert total(samples, LOST) == pytest.approx(victim.lost_gpu_seconds(shared), abs=1e-6)


async def test_a_sibling_that_fails_by_itself_is_not_charged_to_the_preemption(practice: Practice) -> None:
    """It exits with 1 when the scheduler has just chosen the other pod of its Job, which replaces both."""
    await practice.furnish(TIERS, nodes=2)
    pair = practice.pod("pair", "training", annotations=conduct(stop_after="4s"))
    await practice.api.create(job(pair, parallelism=2))
    await practice.running(2, "training")
    await asyncio.sleep(4)  # they train
    urgent = await practice.api.create(practice.pod("urgent", "urgent"))
    chosen = await practice.pods(lambda items: any("deletionTimestamp" in each["metadata"] for each in items))
    [sibling] = practice.live(chosen, "training")
    fails = {"metadata": {"annotations": conduct(run_for="1s", exit_as="Failed")}}
    await practice.api.patch(path({**sibling, "apiVersion": "v1", "kind": "Pod"}), fails)
    await practice.running(1, "urgent")
    await practice.api.delete(path(urgent))
    await practice.running(2, "training")

    truth = await practice.truth()
    [victim], failed = truth.victims.values(), truth.pods[sibling["metadata"]["uid"]]
    assert failed.stopped is not None
    assert (failed.ended["exitCode"], victim.requested <= failed.stopped) == (1, True)
    assert failed.lost_gpu_seconds() >= 4
    await practice.agrees(truth.rows())
    samples = await practice.counted(truth)
    assert total(samples, LOST) == pytest.approx(victim.lost_gpu_seconds(), abs=1e-6)


async def test_the_job_of_a_cron_job_fails_by_preemptions_that_use_up_its_retries(practice: Practice) -> None:
    await practice.furnish(TIERS)
    nightly = await practice.api.create(cron_job(practice))
    last = (datetime.now(UTC) - timedelta(seconds=90)).isoformat(timespec="seconds")
    await practice.api.patch(f"{path(nightly)}/status", {"status": {"lastScheduleTime": last}})
    await practice.running(1, "training")
    await practice.api.patch(path(nightly), {"spec": {"suspend": True}})

    await preempt(practice, "urgent-0")
    await practice.running(1, "training")
    await preempt(practice, "urgent-1")

    jobs = f"/apis/batch/v1/namespaces/{practice.place}/jobs"
    [failed] = await practice.api.wait_for_items(jobs, lambda items: bool(items) and all(map(is_failed, items)))
    assert condition(failed, "Failed")["reason"] == "BackoffLimitExceeded"
    assert failed["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
    name = failed["metadata"]["name"]
    truth = await practice.truth()
    first, second = sorted(truth.victims.values(), key=lambda pod: pod.decided)
    ran = {"replaced": second.started, "replacement_uid": second.uid}
    followed: dict[str, Json] = {first.uid: ran, second.uid: {"replaced": None, "replacement_uid": ""}}
    of_job = {"job_kind": "Job", "job": name}
    await practice.agrees({uid: row | followed[uid] | of_job for uid, row in truth.rows().items()})
    await practice.counted(truth)
    outcomes = f"SELECT name, outcome FROM jobs WHERE namespace = '{practice.place}'"
    await practice.product.query_until(outcomes, lambda rows: rows == [(name, "failed_early")])
    samples = await practice.product.until(lambda samples: total(samples, EARLY, outcome="failed_early") == 1)
    assert total(samples, EARLY) == 1


async def test_a_victim_that_ignores_sigterm_exceeds_its_grace_period(practice: Practice) -> None:
    """Within two seconds it does not count, since API times have whole seconds and a kubelet needs time, too."""
    await practice.furnish(TIERS, nodes=2)
    for name, stops in (("deaf", "5s"), ("slow", "3s")):
        killed = conduct(stop_after=stops, exit_on_term="137") | {ON_SIGTERM: "true"}
        pod = practice.pod(name, "training", annotations=killed, terminationGracePeriodSeconds=2)
        await practice.api.create(pod)
    await practice.running(2, "training")

    await practice.api.create(deployment(practice.pod("urgent", "urgent"), replicas=2))
    await practice.running(2, "urgent")

    truth = await practice.truth()
    exceeded = {row["pod"]: row["grace_exceeded_seconds"] for row in truth.rows().values()}
    assert exceeded["deaf"] > KUBELET_S
    assert exceeded["slow"] > 0
    assert {row["lost_basis"] for row in truth.rows().values()} == {"start"}
    await practice.agrees(truth.rows())
    await practice.counted(truth)


async def test_a_hundred_preemptions_at_once_are_recorded_as_each_was(practice: Practice) -> None:
    await practice.furnish(TIERS, nodes=CROWD // 4, gpus=4)
    await asyncio.gather(*(practice.api.create(practice.pod(f"train-{n}", "training")) for n in range(CROWD)))
    await practice.running(CROWD, "training")

    await practice.api.create(deployment(practice.pod("serve", "urgent"), replicas=CROWD))
    await practice.running(CROWD, "urgent")

    truth = await practice.truth()
    assert len(truth.victims) == CROWD
    await practice.agrees(truth.rows())
    samples = await practice.counted(truth)
    lost = sum(each.lost_gpu_seconds() for each in truth.victims.values())
    assert total(samples, LOST, basis="start") == pytest.approx(lost, abs=1e-6)
    for step, took in steps(truth).items():
        assert total(samples, "gputally_preemption_step_seconds_count", step=step) == len(took)
        assert total(samples, "gputally_preemption_step_seconds_sum", step=step) == pytest.approx(sum(took), abs=1e-6)
    decided = [each.decided for each in truth.victims.values()]
    logger.info("%d preemptions, decided within %.0f s", CROWD, max(decided) - min(decided))


@pytest.mark.asyncio(loop_scope="session")
async def test_a_minute_later_the_only_nominated_pod_counts_as_the_preemptor_and_an_event_corrects_it(
    blind: Practice,
) -> None:
    truth = await blind.truth()
    expected = {uid: row | inferred(truth.victims[uid]) for uid, row in truth.rows().items()}
    await blind.agrees(expected, within=90)
    tiers, urgent = {blind.tier("training")}, blind.tier("urgent")
    counted = by_tiers(await blind.product.scrape(), tiers)
    assert counted == {(*tiers, urgent): 2, (*tiers, "unknown"): 2}

    events = [right for right in documented_rights() if right[1] == "events"]
    more = await bind(blind.api, blind.account, blind.place, events, role=f"{blind.account}-events")

    await blind.agrees(truth.rows())
    corrected = {(*tiers, urgent): 4, (*tiers, "unknown"): 2}  # a published counter does not fall
    await blind.product.until(lambda samples: by_tiers(samples, tiers) == corrected)
    await revoke(blind.api, more)


async def lose_events(practice: Practice) -> None:
    """One pod is nominated to the first node, two to the second, and one without GPUs to the third."""
    await practice.furnish(TIERS, nodes=0)
    named = {"alone": 1, "crowded": 2, "small": 1}
    stop = conduct(stop_after="3s")
    for node, gpus in named.items():
        await practice.node(node, gpus=gpus)
        for number in range(gpus):
            await practice.api.create(
                practice.pod(f"{node}-{number}", "training", annotations=stop, nodeSelector=practice.on(node))
            )
    await practice.running(4, "training")
    light = practice.pod("light", "urgent", gpus=0, nodeSelector=practice.on("small"))
    light["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "96"  # all that the node has
    urgent = [
        practice.pod(f"urgent-{n}", "urgent", nodeSelector=practice.on(node))
        for n, node in enumerate(("alone", "crowded", "crowded"))
    ]
    await asyncio.gather(*map(practice.api.create, (light, *urgent)))
    await practice.running(4, "urgent")


def inferred(victim: TruePod) -> Json:
    """What is known of its preemptor without an Event."""
    if victim.name.startswith("crowded-"):
        return {**NOBODY, "preemptor_tier": "unknown", "is_preemptor_inferred": False}
    return {"is_preemptor_inferred": True}


def gang(practice: Practice, *, labels: dict[str, str], **spec: object) -> Json:
    pod = practice.pod("gang", "training", labels=labels)
    return job(pod, parallelism=GANG, completionMode="Indexed", **spec)


async def saved_by_one_of(practice: Practice) -> None:
    """Rank 0 states a checkpoint for all, and they go on for two seconds."""
    pods = await practice.running(GANG, "training")
    [rank_0] = [pod for pod in pods if pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "0"]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    rank_0 = {**rank_0, "apiVersion": "v1", "kind": "Pod"}
    await practice.api.patch(path(rank_0), {"metadata": {"annotations": {ANNOTATION: now}}})
    await asyncio.sleep(2)  # they train


async def preempt(practice: Practice, name: str) -> None:
    """A pod takes a GPU and goes."""
    urgent = await practice.api.create(practice.pod(name, "urgent"))
    await practice.running(1, "urgent")
    await practice.api.delete(path(urgent))
    await practice.pods(lambda items: all(item["metadata"]["name"] != name for item in items))


def cron_job(practice: Practice) -> Json:
    """It runs each minute."""
    training = job(practice.pod("nightly", "training"), backoffLimit=1)
    template = {name: training[name] for name in ("metadata", "spec")}
    template["metadata"] = {"labels": template["metadata"]["labels"]}
    spec = {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": template}
    meta = {"name": "nightly", "namespace": practice.place}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": spec}


def members(truth: TruePreemptions, labels: Mapping[str, str]) -> list[TruePod]:
    return [pod for pod in truth.pods.values() if labels.items() <= pod.labels.items()]


def steps(truth: TruePreemptions) -> dict[str, list[float]]:
    """The durations of the steps of all preemptions, of which none was replaced."""
    rows = truth.rows().values()
    return {
        "request": [max(0, row["requested"] - row["decided"]) for row in rows],
        "stop": [row["stop_seconds"] for row in rows],
        "reuse": [row["reused"] - row["released"] for row in rows],
        "replace": [],
    }


def is_failed(found: Json) -> bool:
    return condition(found, "Failed").get("status") == "True"
