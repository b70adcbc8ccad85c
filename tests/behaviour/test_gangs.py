"""Gangs on both clusters: what their pods hold while others are missing, as the API server's objects say."""

import json

from tests.behaviour.product import Rows, total
from tests.behaviour.recorder import us
from tests.behaviour.stage import Stage, live
from tests.behaviour.test_why import ask
from tests.cluster.manifests import Json, conduct, gpu_node, gpu_pod, job
from tests.cluster.objects import Items, container_state

TIERS = {"training": 500}
TEAMS = {"ml": "ml", "vision": "vision"}
LASTING = conduct(run_for="1h", stop_after="1s")
SEGMENTS = "SELECT pod_uid, state, start_us, end_us FROM current_segments ORDER BY start_us"


async def furnish(stage: Stage, *, gpus: int) -> None:
    await stage.furnish(nodes=1, gpus=gpus, tiers=TIERS, teams=TEAMS)
    await stage.product.start()


def member(gang: str, number: int, *, of: str) -> Json:
    labels = {"training.kubeflow.org/job-name": gang}
    return gpu_pod(f"{gang}-{number}", of, labels=labels, annotations=LASTING, priorityClassName="training")


async def gangs_of(stage: Stage, subject: str) -> list[Json]:
    """The partial gang in each answer about it."""
    answers = json.loads((await ask(stage, "why", "--output", "json", subject)).out)["answers"]
    return [each["gang"] for each in answers if each["gang"]]


def starts(pods: Items) -> dict[str, int]:
    return {each["metadata"]["uid"]: us(container_state(each, "running")["startedAt"]) for each in pods}


async def test_of_a_gang_of_eight_six_hold_gpus_for_nothing_until_the_other_two_run(stage: Stage) -> None:
    await furnish(stage, gpus=6)
    pod = gpu_pod("gang", "ml", annotations=LASTING, priorityClassName="training")
    await stage.create(job(pod, parallelism=8, completionMode="Indexed"))
    await stage.running(6)

    samples = await stage.product.until(lambda found: total(found, "gputally_partial_gangs", tier="training") == 1)
    assert total(samples, "gputally_partial_gang_gpus", tier="training") == 6
    [gang] = await gangs_of(stage, "ml/job/gang")
    assert (gang["kind"], gang["name"], gang["bound"], gang["needed"], gang["gpus"]) == ("Job", "gang", 6, 8, 6.0)
    assert gang["deadlocked_with"] == []

    allocated = "gputally_allocated_gpu_seconds_total"  # API times have whole seconds
    await stage.product.until(lambda found: total(found, allocated, tier="training", state="gang_wait") > 12)
    await stage.create(gpu_node("late", gpus=2))
    truth = starts(await stage.running(8))
    complete = max(truth.values())
    await stage.product.until(lambda found: total(found, "gputally_partial_gangs", tier="training") == 0)
    rows = await stage.product.query_until(SEGMENTS, lambda rows: running_since(rows, complete) == truth.keys())
    waited = {uid: end - start for uid, state, start, end in rows if state == "gang_wait"}
    assert waited == {uid: complete - at for uid, at in truth.items() if at < complete}
    assert len(waited) >= 6


def running_since(rows: Rows, complete: int) -> set[str]:
    return {uid for uid, state, start, _ in rows if state == "running" and start == complete}


async def test_two_gangs_that_wait_for_each_other_are_named_until_one_is_deleted(stage: Stage) -> None:
    await furnish(stage, gpus=8)
    gangs = {"bert": "ml", "resnet": "vision"}
    for numbers in (range(4), range(4, 8)):
        await stage.create(*(member(gang, number, of=of) for gang, of in gangs.items() for number in numbers))
        await stage.running(8)

    samples = await stage.product.until(lambda found: total(found, "gputally_deadlocked_gangs") == 2)
    assert total(samples, "gputally_partial_gangs", tier="training") == 2
    [gang] = await gangs_of(stage, "ml/bert-7")
    assert (gang["bound"], gang["needed"], gang["deadlocked_with"]) == (4, 8, ["TrainingJob vision/resnet"])
    assert "it and TrainingJob vision/resnet wait for each other" in " ".join(
        (await ask(stage, "why", "ml/bert-7")).out.split()
    )

    for number in range(8):
        await stage.api.delete(f"/api/v1/namespaces/vision/pods/resnet-{number}")
    await stage.pods(
        lambda items: {each["metadata"]["namespace"] for each in live(items)} == {"ml"} and len(items) == 8
    )
    await stage.running(8)
    await stage.product.until(
        lambda found: total(found, "gputally_deadlocked_gangs") == total(found, "gputally_partial_gangs") == 0
    )
