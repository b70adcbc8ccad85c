"""`gputally why` and `what-if` on both clusters: S1 to S4 as their users would ask."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.behaviour.stage import Stage
from tests.behaviour.test_scenarios import S1_TEAMS, S1_TIERS, S2_TEAMS, S2_TIERS, never, placed
from tests.cluster.manifests import Json, conduct, deployment, gpu_pod, job
from tests.fakes.command import Done, run

LASTING = conduct(run_for="1h", stop_after="1s")


def pod(name: str, namespace: str, tier: str, *, gpus: int = 1, restart: str = "Never") -> Json:
    return gpu_pod(name, namespace, gpus=gpus, annotations=LASTING, priorityClassName=tier, restartPolicy=restart)


async def ask(stage: Stage, *arguments: str | Path) -> Done:
    return await run(arguments[0], "--url", stage.product.url, *arguments[1:])


async def answers(stage: Stage, *arguments: str | Path) -> list[Json]:
    """The answers of `gputally why` as JSON."""
    found = await ask(stage, "why", "--output", "json", *arguments)
    assert (found.status, found.err) == (0, "")
    document: list[Json] = json.loads(found.out)["answers"]
    return document


async def judged(stage: Stage, subject: str, reason: str) -> Json:
    """The only answer, once it has this verdict."""
    last = Done(0, "", "")
    for _ in range(20):
        last = await ask(stage, "why", "--output", "json", subject)
        if last.status == 0:
            found: list[Json] = json.loads(last.out)["answers"]
            if [each["pod"]["reason"] for each in found] == [reason]:
                return found[0]
        await asyncio.sleep(0.1)
    raise AssertionError(last.out + last.err)


async def pending(stage: Stage, *arguments: str) -> dict[str, int]:
    """Pods by reason."""
    found = json.loads((await ask(stage, "why", "--output", "json", *arguments)).out)
    return {each["reason"]: each["pods"] for each in found["reasons"]}


def held_by(answer: Json) -> set[tuple[str, bool, str]]:
    return {(each["tier"], each["may_be_preempted"], each["why_not"]) for each in answer["occupants"]}


async def test_s1_training_that_inference_preempted_waits_for_capacity_of_inference(stage: Stage) -> None:
    await stage.furnish(nodes=8, gpus=1, tiers=S1_TIERS, teams=S1_TEAMS)
    await stage.product.start()
    low = pod("low", "ml-training", "training-low", restart="Always")
    await stage.create(deployment(low, replicas=8))  # a Job would replace its pods only after minutes of back-off
    await stage.running(8)
    await stage.create(deployment(pod("serve", "ml-inference", "inference-critical", restart="Always"), replicas=6))
    await stage.running(6, tier="inference-critical")

    answer = await judged(stage, "ml-training/job/low", "capacity")
    assert held_by(answer) < {
        ("inference-critical", False, "higher priority"),
        ("training-low", False, "same priority"),
    }, "of equal nodes, one is named"
    assert answer["pods"] == 6
    assert "have their GPUs, on 2 nodes.\n" in (await ask(stage, "why", "ml-training/job/low")).out
    [running] = await answers(stage, f"ml-inference/{await name_of(stage, 'inference-critical')}")
    assert (running["state"], running["pod"]["tier"]) == ("running", "inference-critical")
    assert "No pod in namespace ml-inference waits" in (await ask(stage, "why", "ml-inference")).out


async def test_s2_a_class_that_never_preempts_waits_although_lower_tiers_run(stage: Stage) -> None:
    await stage.furnish(nodes=2, gpus=8, tiers=S2_TIERS | {"gpu-notebook": 100}, teams=S2_TEAMS)
    await stage.create(never("gpu-interactive", 200))
    await stage.product.start()
    for number in range(2):
        await stage.create(placed(pod(f"low-{number}", "tenant-beta", "gpu-notebook", gpus=6), f"node-{number}"))
    await stage.running(2)
    await stage.create(pod("waits", "tenant-alpha", "gpu-interactive", gpus=8))

    answer = await judged(stage, "tenant-alpha/waits", "never_preempts")
    assert held_by(answer) == {("gpu-notebook", False, "gpu-interactive never preempts")}
    assert answer["pod"]["may_preempt"] is False
    helps = [each["text"] for each in answer["helps"]]
    assert "let its PriorityClass preempt (preemptionPolicy: PreemptLowerPriority)" in helps
    assert "ask for PriorityClass gpu-batch" in helps, "the lowest class that may preempt them"


async def test_s2_training_waits_if_no_single_node_has_enough(stage: Stage) -> None:
    await stage.furnish(nodes=2, gpus=8, tiers=S2_TIERS, teams=S2_TEAMS)
    await stage.product.start()
    for number in range(2):
        await stage.create(placed(pod(f"top-{number}", "tenant-beta", "gpu-training", gpus=5), f"node-{number}"))
    await stage.running(2)
    await stage.create(pod("waits", "tenant-alpha", "gpu-batch", gpus=6))

    answer = await judged(stage, "tenant-alpha/waits", "fragmented")
    [obstacle] = answer["obstacles"]
    assert obstacle["text"].endswith("6 GPUs needed, 3 available")


async def test_s3_of_a_gang_with_six_of_eight_placed_two_wait(stage: Stage) -> None:
    await stage.furnish(nodes=1, gpus=6, tiers=S1_TIERS, teams=S1_TEAMS)
    await stage.product.start()
    await stage.create(job(pod("gang", "ml-training", "training-high"), parallelism=8))
    await stage.running(6)

    answer = await judged(stage, "ml-training/job/gang", "capacity")
    assert (answer["pods"], answer["pod"]["gpus"]) == (2, 1.0)
    assert held_by(answer) == {("training-high", False, "same priority")}
    assert await pending(stage, "--all") == {"capacity": 2}


async def test_s4_inference_below_training_is_an_inversion(stage: Stage) -> None:
    await stage.furnish(nodes=1, gpus=4, tiers={"high-training": 1000, "low-inference": 500}, teams=S1_TEAMS)
    await stage.product.start()
    await stage.create(pod("train", "ml-training", "high-training", gpus=4))
    await stage.running(1)
    await stage.create(pod("serve", "ml-inference", "low-inference"))

    answer = await judged(stage, "ml-inference/serve", "inversion")
    assert held_by(answer) == {("high-training", False, "higher priority")}


async def test_s4_a_forecast_says_whom_a_pod_would_evict_before_the_scheduler_does(
    stage: Stage, tmp_path: Path
) -> None:
    await stage.furnish(nodes=1, gpus=4, tiers=S1_TIERS, teams=S1_TEAMS)
    await stage.product.start()
    await stage.create(pod("victim", "ml-training", "training-low", gpus=4))
    await stage.running(1)
    manifest = tmp_path / "serve.json"
    serve = pod("serve", "ml-inference", "inference-critical")
    manifest.write_text(json.dumps(serve))

    forecast = await foreseen(stage, manifest)
    assert [each["pod"] for each in forecast["victims"]] == ["victim"]
    assert (forecast["bound"], forecast["nodes"]) == (1, ["node-0"])
    assert "would be bound now, by preempting 1 pod." in (await ask(stage, "what-if", manifest)).out
    await stage.create(serve)
    await stage.running(1, tier="inference-critical")
    [answer] = await answers(stage, "ml-inference/serve")
    assert (answer["state"], answer["node"]) == ("running", "node-0")
    assert "victims_stopping" in {each["reason"] for each in answer["waits"]}, "it waited until the victim had stopped"
    await stage.pods(lambda items: len(items) == 1)
    gone = await gone_pod(stage, "ml-training/victim")
    assert gone["preempted"]["pod"] == "serve"
    assert gone["pod"]["class_name"] == "training-low"


async def test_what_does_not_exist_or_is_not_reached_is_an_error_with_its_own_status(stage: Stage) -> None:
    await stage.furnish(nodes=1, gpus=4, tiers=S1_TIERS, teams=S1_TEAMS)
    await stage.create(gpu_pod("cpu-only", "ml-training", gpus=0))
    await stage.product.start()

    for name in ("none", "cpu-only"):
        found = await ask(stage, "why", f"ml-training/{name}")
        assert found.status == 12
        assert found.err.startswith(
            f"gputally: no pod with GPUs is known as ml-training/{name}; check the name, and that it requests GPUs; "
            "pods are known from "
        )
    unreached = await run("why", "--all", "--url", "http://127.0.0.1:9")
    assert (unreached.status, unreached.out) == (8, "")


async def gone_pod(stage: Stage, subject: str) -> Json:
    """The answer about a deleted pod, once its preemption is in the ledger."""
    for _ in range(40):
        found = await ask(stage, "why", "--output", "json", subject)
        answers: list[Json] = json.loads(found.out)["answers"] if found.status == 0 else []
        if answers and answers[0]["state"] == "gone" and answers[0]["preempted"]:
            return answers[0]
        await asyncio.sleep(0.2)
    raise AssertionError(found)


async def foreseen(stage: Stage, manifest: Path) -> dict[str, Any]:
    """The only forecast, once the aggregator knows what all pods take."""
    for _ in range(20):
        found = await ask(stage, "what-if", "--output", "json", manifest)
        assert (found.status, found.err) == (0, "")
        [forecast] = json.loads(found.out)["forecasts"]
        if forecast["reason"] != "not_yet_known":
            break
        await asyncio.sleep(0.1)
    result: dict[str, Any] = forecast
    return result


async def name_of(stage: Stage, tier: str) -> str:
    items = await stage.running(6, tier=tier)
    found: str = next(each["metadata"]["name"] for each in items if each["spec"].get("priorityClassName") == tier)
    return found
