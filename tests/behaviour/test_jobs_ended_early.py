"""What a Job makes of preempted pods, the same on both clusters, and what the product says of it."""

from collections.abc import AsyncIterator

import pytest

from tests.behaviour.product import total
from tests.behaviour.stage import Stage, live
from tests.cluster.manifests import Json, conduct, gpu_pod, job
from tests.cluster.objects import Items

REAL = pytest.param("real", marks=pytest.mark.e2e)
TIERS = {"early-urgent": 1_000, "early-training": 100}
TRAIN = "/apis/batch/v1/namespaces/training/jobs/train"
URGENT = "/api/v1/namespaces/training/pods/urgent"
DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
OUTCOMES = "SELECT outcome FROM jobs WHERE name = 'train'"
SIGTERM = {"onExitCodes": {"operator": "In", "values": [143]}}


def policy(action: str, **matches: object) -> Json:
    return {"rules": [{"action": action, **matches}]}


@pytest.fixture
async def furnished(stage: Stage) -> AsyncIterator[Stage]:
    """Deletes the Job of the test, which would replace the pods that `clear` deletes."""
    await stage.furnish(nodes=1, gpus=2, tiers=TIERS, teams={"training": "red"})
    await stage.product.start()
    yield stage
    await stage.delete_all(TRAIN)


async def train(
    stage: Stage, *, parallelism: int = 1, stop_after: str = "3s", exit_on_term: str = "", **spec: object
) -> None:
    """Run a Job whose pods train until they are told to stop, which takes them three seconds."""
    annotations = conduct(stop_after=stop_after, exit_on_term=exit_on_term)
    form = gpu_pod("train", "training", annotations=annotations, priorityClassName="early-training")
    await stage.create(job(form, parallelism=parallelism, **spec))
    await stage.running(parallelism, tier="early-training")


async def preempt(stage: Stage, *, leaves: int = 0) -> None:
    """A pod that needs the GPUs of all training pods, except that `leaves` of them can stay, takes them and goes."""
    await stage.create(gpu_pod("urgent", "training", gpus=2 - leaves, priorityClassName="early-urgent"))
    await stage.running(1, tier="early-urgent")
    await stage.api.delete(URGENT)


async def replaced(stage: Stage) -> None:
    """Another training pod runs; the Job controller waits ten seconds after a failure."""
    await stage.pods(lambda items: len(live(items, "early-training")) == 1 and gone(items), within=60)


def gone(items: Items) -> bool:
    return not any(item["metadata"]["name"] == "urgent" for item in items)


async def ended(stage: Stage) -> tuple[dict[str, str], int, int]:
    """The true conditions of the Job with their reasons, once it has ended, and its failures and successes."""
    await stage.api.wait_for(TRAIN, lambda found: bool(found and {"Complete", "Failed"} & reasons(found).keys()))
    return await state(stage)


async def state(stage: Stage) -> tuple[dict[str, str], int, int]:
    found = await stage.api.get(TRAIN)
    return reasons(found), found["status"].get("failed", 0), found["status"].get("succeeded", 0)


def reasons(found: Json) -> dict[str, str]:
    conditions = found["status"].get("conditions") or []
    return {each["type"]: each["reason"] for each in conditions if each["status"] == "True"}


async def reported(stage: Stage, outcome: str) -> None:
    """Wait until the product calls this the outcome of the Job, and counts it if preemptions ended it."""
    await stage.product.query_until(OUTCOMES, lambda rows: rows == [(outcome,)])
    labels = {"tier": "early-training", "tenant": "red"}
    is_early = outcome.endswith("_early")
    samples = await stage.product.until(
        lambda samples: total(samples, "gputally_jobs_ended_early_total", **labels, outcome=outcome) == is_early
    )
    assert total(samples, "gputally_jobs_ended_early_total", **labels) == is_early


def both(interim: str, final: str, reason: str) -> dict[str, str]:
    return {interim: reason, final: reason}


async def test_a_job_that_waits_for_the_end_of_a_preempted_pod_that_exits_with_0_is_complete(furnished: Stage) -> None:
    await train(furnished, exit_on_term="0", podReplacementPolicy="Failed")

    await preempt(furnished)

    assert await ended(furnished) == (both("SuccessCriteriaMet", "Complete", "CompletionsReached"), 0, 1)
    await reported(furnished, "completed_early")


@pytest.mark.parametrize("plane", [REAL], indirect=True)
async def test_a_pod_that_exits_with_0_at_once_is_a_success_for_any_job(furnished: Stage) -> None:
    """The Job controller looks a second after an event; the simulator's looks at once."""
    await train(furnished, stop_after="0s", exit_on_term="0")
    await furnished.api.wait_for(TRAIN, lambda found: bool(found and found["status"].get("ready")))

    await preempt(furnished)

    assert await ended(furnished) == (both("SuccessCriteriaMet", "Complete", "CompletionsReached"), 0, 1)
    await reported(furnished, "completed_early")


async def test_by_default_two_preemptions_use_up_a_backoff_limit_of_one(furnished: Stage) -> None:
    await train(furnished, exit_on_term="0", backoffLimit=1)

    await preempt(furnished)
    await replaced(furnished)
    assert await state(furnished) == ({}, 1, 0)
    await preempt(furnished)

    assert await ended(furnished) == (both("FailureTarget", "Failed", "BackoffLimitExceeded"), 2, 0)
    await reported(furnished, "failed_early")


async def test_a_policy_that_ignores_disruptions_replaces_a_preempted_pod_and_does_not_count_it(
    furnished: Stage,
) -> None:
    await train(furnished, backoffLimit=0, podFailurePolicy=policy("Ignore", **DISRUPTED))

    await preempt(furnished)
    await replaced(furnished)

    assert await state(furnished) == ({}, 0, 0)
    await reported(furnished, "running")


async def test_a_policy_that_fails_a_job_on_an_exit_code_fails_it_for_a_preempted_pod(furnished: Stage) -> None:
    await train(furnished, podFailurePolicy=policy("FailJob", **SIGTERM))

    await preempt(furnished)

    assert await ended(furnished) == (both("FailureTarget", "Failed", "PodFailurePolicy"), 1, 0)
    await reported(furnished, "failed_early")


async def test_the_pods_that_a_job_stops_when_it_fails_count_as_failed_too(furnished: Stage) -> None:
    await train(furnished, parallelism=2, backoffLimit=0)

    await preempt(furnished, leaves=1)

    assert await ended(furnished) == (both("FailureTarget", "Failed", "BackoffLimitExceeded"), 2, 0)
    await reported(furnished, "failed_early")
