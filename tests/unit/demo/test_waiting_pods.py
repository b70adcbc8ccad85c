"""The demo's scenario `waits` shows every case that it says it shows, with `gputally why`, the page and the metrics."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from tests.fakes.command import PATIENCE_SECONDS, Samples, run, scrape
from tests.fakes.demonstrating import demonstrating

CASES = {
    "ml-training/llm-pretrain-worker-0": "capacity",
    "ml-vision/vlm-pretrain-worker-0": "capacity",
    "ml-inference/llm-api": "inversion",
    "ml-vision/evaluate": "never_preempts",
    "ml-vision/sweep": "cpu_or_memory",
    "ml-training/llm-16-gpus": "impossible",
    "ml-vision/transcode": "excluded",
    "ml-vision/export": "fragmented",
    "ml-training/ablation": "gated",
    "ml-training/distributed": "queued",
    "ml-training/alignment": "claim",
    "ml-training/rendering": "no_scheduler",
}
"""The verdict of each pod that waits; of pods with a generated name, what is before it."""
GANGS = {"TrainingJob ml-training/llm-pretrain", "TrainingJob ml-vision/vlm-pretrain"}


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with demonstrating("--scenario", "waits") as url:
        yield url


async def pending(url: str, is_there: Callable[[Any], bool]) -> Any:  # noqa: ANN401 - a document
    """The answer about all waiting pods, once it shows what is expected."""
    found: Any = {}
    async with aiohttp.ClientSession() as session, asyncio.timeout(3 * PATIENCE_SECONDS):
        while not (found and is_there(found)):
            async with session.get(f"{url}/api/v1/pending") as response:
                found = await response.json()
            await asyncio.sleep(0.2)
    return found


async def measured(url: str, *series: str) -> Samples:
    """A scrape in which none of these series is 0."""
    async with asyncio.timeout(3 * PATIENCE_SECONDS):
        while True:
            found = await scrape(url)
            if all(found.get(each) for each in series):
                return found
            await asyncio.sleep(0.2)


def kinds(document: Any) -> dict[str, list[str]]:  # noqa: ANN401 - as above
    return {each["finding"]: each["names"] for each in document["findings"]}


async def test_every_case_is_shown_as_it_is_called(url: str) -> None:
    found = await pending(url, lambda document: {"inversion", "starvation"} <= kinds(document).keys())

    reasons = {f"{each['namespace']}/{each['pod']}": each["reason"] for each in found["pods"]}
    assert {next(case for case in CASES if name.startswith(case)): why for name, why in reasons.items()} == CASES
    assert kinds(found)["starvation"] == ["ml-vision/evaluate"]
    assert [name.startswith("ml-inference/llm-api-") for name in kinds(found)["inversion"]] == [True]
    priced = {each["pod"]: (each["gpu_model"], each["cost_per_hour"]) for each in found["pods"]}
    assert priced["evaluate"] == ("Tesla-T4", "1.4")
    assert {each["name"]: each["reason"] for each in found["workloads"]} == {
        "classifier": "quota_never",
        "regression": "refused",
    }
    found = await pending(url, lambda document: all(each["deadlocked_with"] for each in document["gangs"]))
    assert {partner for each in found["gangs"] for partner in each["deadlocked_with"]} == GANGS
    assert {(each["bound"], each["needed"]) for each in found["gangs"]} == {(1, 2)}
    answer = json.loads((await run("why", "ml-training/llm-pretrain-worker-0", "--output", "json", "--url", url)).out)
    assert answer["answers"][0]["gang"]["bound"] == 1
    await measured(
        url,
        'gputally_pending_finding_pods{finding="inversion",tier="inference-standard"}',
        'gputally_pending_finding_pods{finding="starvation",tier="training-standard"}',
        'gputally_partial_gangs{tier="training-high"}',
        "gputally_deadlocked_gangs",
        'gputally_stranded_gpus{gpu_model="Tesla-T4",pool="t4-pool",reason="cpu"}',
    )
