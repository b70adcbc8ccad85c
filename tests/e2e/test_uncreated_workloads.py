"""Workloads whose pods a quota or a LimitRange of a real control plane refuses, or that wait in a queue."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.behaviour.product import Product, total
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import (
    Json,
    deployment,
    gpu_node,
    gpu_pod,
    job,
    metadata,
    priority_class,
    resource_quota,
    workload,
)
from tests.e2e.watching import watching
from tests.fakes.command import run

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets of killed servers
]

QUEUE = {"kueue.x-k8s.io/queue-name": "research"}

EXPECTED = {
    "too-large": ("quota_never", 2, 16),
    "second": ("quota", 1, 4),
    "serve": ("quota_never", 2, 14),
    "much-cpu": ("refused", 1, 1),
    "queued": ("queued", 3, 24),
}
"""Reason, missing pods and their GPUs by job."""
AT_LEAST = "gputally_uncreated_at_least_gpu_seconds_total"
QUOTA = {"name": "training", "resource": "requests.nvidia.com/gpu", "requested": 4.0, "used": 4.0, "hard": 6.0}


@pytest.fixture
async def product(api: Api, control_plane: ControlPlane, place: str, tmp_path: Path) -> AsyncIterator[Product]:
    """The aggregator with the rights that the chart grants for its optional watches, not started yet."""
    async with watching(
        api,
        control_plane,
        place,
        tmp_path,
        values=("resourceQuotas", "failedCreates"),
        environment={"GPUTALLY_WATCH": "resourcequotas,events/FailedCreate"},
    ) as found:
        yield found


async def workloads(product: Product, place: str) -> dict[str, Json]:
    """The workloads of the namespace that lack pods, by job."""
    found = await run("why", "--url", product.url, "--output", "json", "--namespace", place)
    assert found.status == 0, found.err
    return {each["job"]: each for each in json.loads(found.out)["workloads"]}


async def lacking(product: Product, place: str, holds: Callable[[dict[str, Json]], bool]) -> dict[str, Json]:
    """The workloads once they are as expected."""
    found: dict[str, Json] = {}
    for _ in range(120):
        found = await workloads(product, place)
        if holds(found):
            return found
        await asyncio.sleep(0.25)
    raise AssertionError({name: (each["reason"], each["pods"], each["text"]) for name, each in found.items()})


def reasons(found: dict[str, Json]) -> dict[str, tuple[str, int, float]]:
    """Reason, missing pods and their GPUs."""
    return {name: (each["reason"], each["pods"], each["gpus"]) for name, each in found.items()}


async def test_each_workload_without_pods_has_its_verdict_until_its_pods_exist(
    api: Api, place: str, product: Product
) -> None:
    await furnish(api, place)
    for each in refused(place):
        await api.create(each)
    await product.start()

    found = await lacking(product, place, lambda found: reasons(found) == EXPECTED)
    assert {each["tier"] for each in found.values()} == {f"{place}-training"}
    assert found["serve"]["job_kind"] == "Deployment"
    assert found["second"]["quota"] == QUOTA
    assert "maximum cpu usage per Container is 4" in found["much-cpu"]["message"]
    samples = await product.scrape()
    assert total(samples, "gputally_uncreated_pods", tier=f"{place}-training", reason="quota_never") == 4
    assert total(samples, "gputally_uncreated_gpus", tier=f"{place}-training", reason="queued") == 24
    assert total(samples, "gputally_quota_refused_gpus", tier="any") == 16 + 4 + 14
    said = await run("why", "--url", product.url, f"{place}/job/too-large")
    assert said.status == 0
    assert "8 GPUs needed, 6 allowed" in " ".join(said.out.split())

    quota = f"/api/v1/namespaces/{place}/resourcequotas/training"
    await api.patch(quota, {"spec": {"hard": {"requests.nvidia.com/gpu": "64"}}})
    await api.delete(f"/apis/batch/v1/namespaces/{place}/jobs/queued")
    await lacking(product, place, lambda found: reasons(found) == {"much-cpu": EXPECTED["much-cpu"]})
    samples = await product.scrape()
    assert total(samples, "gputally_uncreated_pods", tier=f"{place}-training") == 1
    assert total(samples, "gputally_quota_refused_gpus") == 0


async def test_a_workload_that_is_not_read_is_charged_at_least_one_pod_until_it_has_one(
    api: Api, place: str, product: Product
) -> None:
    await furnish(api, place)
    old = pod("old", place, gpus=4)
    old["metadata"]["labels"] |= {"app": "old"}
    old["spec"] |= {"restartPolicy": "Always"}
    await api.create(workload("v1", "ReplicationController", old, {"replicas": 2, "selector": {"app": "old"}}))
    await product.start()

    found = await lacking(product, place, lambda found: reasons(found) == {"old": ("quota", 1, 4)})
    assert (found["old"]["is_at_least"], found["old"]["tier"]) == (True, "unknown")
    await product.until(lambda found: total(found, AT_LEAST, tier="unknown", cause="quota") > 8)

    quota = f"/api/v1/namespaces/{place}/resourcequotas/training"
    await api.patch(quota, {"spec": {"hard": {"requests.nvidia.com/gpu": "64"}}})
    await product.until(lambda found: total(found, "gputally_uncreated_pods", tier="unknown") == 0, within=120)
    assert await lacking(product, place, lambda found: not found) == {}
    samples = await product.scrape()
    charged = total(samples, AT_LEAST, tier="unknown", cause="quota")
    assert charged == total(samples, "gputally_uncreated_gpu_seconds_total", tier="unknown")
    await asyncio.sleep(1)
    assert total(await product.scrape(), AT_LEAST, tier="unknown", cause="quota") == charged


async def furnish(api: Api, place: str) -> None:
    """A node of 8 GPUs, a quota of 6, of which a Job uses 4, and a limit of 4 CPUs."""
    for manifest in (
        gpu_node(f"{place}-node", gpus=8, pool=place),
        priority_class(f"{place}-training", 100),
        resource_quota("training", place, gpus=6),
        limit_range(place),
    ):
        await api.create(manifest)
    await enforced(api, place)
    await api.create(job(pod("first", place, gpus=4)))
    await api.wait_for(f"/apis/batch/v1/namespaces/{place}/jobs/first", is_active)


def pod(name: str, place: str, *, gpus: int) -> Json:
    pool = {"gputally.io/pool": place}
    return gpu_pod(name, place, gpus=gpus, priorityClassName=f"{place}-training", nodeSelector=pool)


def refused(place: str) -> list[Json]:
    """The workloads of `EXPECTED`, and one that its user has suspended."""
    queued = job(pod("queued", place, gpus=8), parallelism=3, suspend=True)
    queued["metadata"]["labels"] = QUEUE
    much_cpu = pod("much-cpu", place, gpus=1)
    much_cpu["spec"]["containers"][0]["resources"]["limits"] |= {"cpu": "8"}
    return [
        job(pod("too-large", place, gpus=8), parallelism=2),
        job(pod("second", place, gpus=4)),
        deployment(pod("serve", place, gpus=7), replicas=2),
        job(much_cpu),
        queued,
        job(pod("paused", place, gpus=8), suspend=True),
    ]


def limit_range(place: str) -> Json:
    limits = [{"type": "Container", "max": {"cpu": "4"}}]
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": metadata("cpu", place),
        "spec": {"limits": limits},
    }


async def enforced(api: Api, place: str) -> None:
    """Wait until the quota controller has counted the quota; before that, every pod is refused."""
    path = f"/api/v1/namespaces/{place}/resourcequotas/training"
    await api.wait_for(path, lambda found: bool(found and found.get("status", {}).get("used")))


def is_active(found: Json | None) -> bool:
    return bool(found and found.get("status", {}).get("active"))
