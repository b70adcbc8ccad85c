"""What a real Kueue does to Jobs: it holds them back, admits them, and preempts one for another."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.behaviour.product import Product, total
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import Json, conduct, gpu_node, gpu_pod, job, priority_class
from tests.cluster.objects import condition
from tests.e2e.queue_system import API, QUEUE, kueue, queue
from tests.e2e.watching import watching
from tests.fakes.command import run

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets of killed servers
]

PREEMPTOR = (
    *("cause", "preemptor_tier", "preemptor_namespace", "preemptor_kind", "preemptor", "preemptor_uid"),
    *("preemptor_gpus", "is_preemptor_inferred", "queue_rule", "taken_gpus"),
)


@pytest.fixture
async def product(api: Api, control_plane: ControlPlane, place: str, tmp_path: Path) -> AsyncIterator[Product]:
    """The aggregator with the rights that the chart grants for the watch of Workloads, not started yet."""
    async with watching(
        api,
        control_plane,
        place,
        tmp_path,
        values=("kueueWorkloads",),
        environment={"GPUTALLY_WATCH": "workloads.kueue.x-k8s.io"},
    ) as found:
        yield found


async def test_jobs_in_a_queue_have_their_reason_and_a_preempted_one_its_loss(
    api: Api, control_plane: ControlPlane, place: str, product: Product, tmp_path: Path
) -> None:
    async with kueue(control_plane, api, tmp_path):
        await furnish(api, place)
        await product.start()
        await api.create(of_queue(place, "low", gpus=4))
        await api.wait_for(path(place, "low"), is_running)
        await api.create(of_queue(place, "wide", gpus=16))
        [wide] = await waiting(product, place, {"wide": "quota_never"})
        assert wide["gpus"] == 16
        assert "maximum capacity" in wide["text"]

        await api.create(of_queue(place, "high", gpus=4))
        await api.wait_for(path(place, "high"), is_running)
        found = await waiting(product, place, {"low": "queued", "wide": "quota_never"})
        low = next(each for each in found if each["job"] == "low")
        assert "insufficient unused quota for nvidia.com/gpu" in low["text"]

        preempted = {"tier": f"{place}-low", "cause": "queue_preemption"}
        await product.until(lambda samples: total(samples, "gputally_disruptions_total", **preempted) == 1)
        lost = "gputally_disruption_lost_gpu_seconds_total"
        samples = await product.until(lambda samples: total(samples, lost, **preempted) > 0)
        assert total(samples, "gputally_disruptions_total", tier=f"{place}-low") == 1
        await named_as_preemptor(api, place, product)
        await api.delete(path(place, "high"))
        await api.wait_for(path(place, "low"), is_running)
        await waiting(product, place, {"wide": "quota_never"})


async def named_as_preemptor(api: Api, place: str, product: Product) -> None:
    """Kueue says for which Workload it preempted `low`: that is the preemptor in the metrics and in the ledger."""
    pair = {"victim_tier": f"{place}-low", "preemptor_tier": f"{place}-high"}
    await product.until(lambda samples: total(samples, "gputally_preemptions_total", **pair) == 1)
    workloads = (await api.get(f"/apis/{API}/namespaces/{place}/workloads"))["items"]
    [low] = [each for each in workloads if owner_of(each) == "low"]
    [high] = [each for each in workloads if owner_of(each) == "high"]
    message = condition(low, "Evicted")["message"]
    job_uid = high["metadata"]["ownerReferences"][0]["uid"]
    assert f"(UID: {high['metadata']['uid']}, JobUID: {job_uid}) " in message

    [row] = await taken_by_preemptors(product, place)
    assert {name: row[name] for name in PREEMPTOR} == {
        "cause": "queue_preemption",
        "preemptor_tier": f"{place}-high",
        "preemptor_namespace": place,
        "preemptor_kind": "Job",
        "preemptor": "high",
        "preemptor_uid": high["metadata"]["uid"],
        "preemptor_gpus": 4,
        "is_preemptor_inferred": False,
        "queue_rule": "InClusterQueue",
        "taken_gpus": 4,
    }
    assert row["bought_gpu_hours"] > 0


def owner_of(workload: Json) -> str:
    return str(workload["metadata"]["ownerReferences"][0]["name"])


async def record_of(product: Product, place: str) -> Json:
    """The only record of a job."""
    command = ("preemptions", "--window", "today", "--by", "job", "--where", f"namespace={place}", "--output", "json")
    said = await run(*command, "--ledger", str(product.ledger))
    assert said.status == 0, said.err
    [record] = json.loads(said.out)["rows"]
    return dict(record)


async def taken_by_preemptors(product: Product, place: str) -> list[Json]:
    """The rows of `gputally preemptions`, once it is known of all victims what their preemptors took."""
    found: list[Json] = []
    command = ("preemptions", "--window", "today", "--where", f"namespace={place}", "--output", "json")
    for _ in range(120):
        said = await run(*command, "--ledger", str(product.ledger))
        assert said.status == 0, said.err
        found = json.loads(said.out)["rows"]
        if found and all(each["taken_gpus"] for each in found):
            return found
        await asyncio.sleep(0.25)
    raise AssertionError(found)


async def test_a_queue_reclaims_gpus_for_a_workload_whatever_the_priorities(
    api: Api, control_plane: ControlPlane, place: str, product: Product, tmp_path: Path
) -> None:
    async with kueue(control_plane, api, tmp_path):
        await furnish(api, place, lends_to=f"{place}-borrower")
        await product.start()
        borrower = of_queue(place, "high", gpus=4)
        borrower["metadata"]["labels"][QUEUE] = f"{place}-borrower"
        await api.create(borrower)
        await api.wait_for(path(place, "high"), is_running)
        await api.create(of_queue(place, "low", gpus=2))
        await api.wait_for(path(place, "low"), is_running)

        pair = {"victim_tier": f"{place}-high", "preemptor_tier": f"{place}-low"}
        samples = await product.until(lambda samples: total(samples, "gputally_preemptions_total", **pair) == 1)
        assert total(samples, "gputally_preempted_gpus_total", **pair) == 4
        assert total(samples, "gputally_forbidden_preemptions_total", **pair) == 0
        [row] = await taken_by_preemptors(product, place)
        assert (row["queue_rule"], row["preemptor"], row["taken_gpus"]) == ("InCohortReclamation", "low", 2)
        record = await record_of(product, place)
        assert record["rules"] == ["InCohortReclamation (reclamation within the cohort)"]
        assert (record["job"], record["preemptors"]) == ("high", [f"{place}/low"])
        assert "quota" in {each["name"] for each in record["advice"]}


async def furnish(api: Api, place: str, *, lends_to: str = "") -> None:
    """A node of 4 GPUs, and a queue of as many."""
    classes = (priority_class(f"{place}-{tier}", value) for tier, value in (("low", 100), ("wide", 150), ("high", 200)))
    for manifest in (gpu_node(f"{place}-node", gpus=4, pool=place), *classes, *queue(place, gpus=4, lends_to=lends_to)):
        await api.create(manifest)


def of_queue(place: str, name: str, *, gpus: int, pods: int = 1) -> Json:
    """A suspended Job of the tier of that name, with so many GPUs in each of its pods."""
    pod = gpu_pod(
        name,
        place,
        gpus=gpus,
        annotations=conduct(stop_after="1s"),
        priorityClassName=f"{place}-{name}",
        nodeSelector={"gputally.io/pool": place},
    )
    found = job(pod, parallelism=pods, suspend=True)
    found["metadata"]["labels"] = {QUEUE: place}
    return found


def path(place: str, name: str) -> str:
    return f"/apis/batch/v1/namespaces/{place}/jobs/{name}"


def is_running(found: Json | None) -> bool:
    return bool(found and found.get("status", {}).get("ready"))


async def waiting(product: Product, place: str, expected: dict[str, str]) -> list[Json]:
    """The workloads without pods, once they have these reasons by job."""
    found: list[Json] = []
    for _ in range(120):
        said = await run("why", "--url", product.url, "--output", "json", "--namespace", place)
        assert said.status == 0, said.err
        found = json.loads(said.out)["workloads"]
        if {each["job"]: each["reason"] for each in found} == expected:
            return found
        await asyncio.sleep(0.25)
    raise AssertionError([(each["job"], each["reason"], each["text"]) for each in found])
