"""Pods that get GPUs without a device plugin on a real control plane: each is counted, named, and billed nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.behaviour.product import Product, Samples, total
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import GPU, POOL, Json, gpu_node, gpu_pod, metadata, path
from tests.cluster.objects import in_phase
from tests.e2e.watching import watching
from tests.fakes.command import run

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets of killed servers
]

DRIVER = "gpu.nvidia.com"
CHIP = "nvidia.com/GA102GL_A10"
COUNTED = {"dra_extended_resource": 2, "claim": 1, "unknown_device": 1, "not_offered": 1, "no_share": 0}
WORDS = {
    "unchanged": "2 GPUs (nvidia.com/gpu) that are not accounted: Dynamic Resource Allocation serves",
    "by-class": f"devices (deviceclass.resource.kubernetes.io/{DRIVER}) that are not accounted: Dynamic Resource",
    "claiming": "devices that are not accounted: the devices are from a ResourceClaim",
    "machine": f"devices ({CHIP}) that are not accounted: no rule weighs",
    "by-hand": "3 GPUs (nvidia.com/gpu) that are not accounted: the node has never offered",
}
"""The pods, and what `gputally why` says of each."""


def device_class() -> Json:
    """The class of NVIDIA's driver as its chart installs it: pods with nvidia.com/gpu get its devices."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    spec = {"selectors": [selector], "extendedResourceName": GPU}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": metadata(DRIVER), "spec": spec}


def resource_slice(node: str, *, gpus: int) -> Json:
    """The GPUs of a node as the driver publishes them."""
    attributes = {"type": {"string": "gpu"}, "productName": {"string": "NVIDIA H100 80GB HBM3"}}
    devices = [{"name": f"gpu-{number}", "attributes": attributes} for number in range(gpus)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": metadata(f"{node}-{DRIVER}"),
        "spec": {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices},
    }


def claim_template(place: str) -> Json:
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata("one-gpu", place),
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def node(name: str, place: str, *, offers: dict[str, str], counts: str) -> Json:
    """A node whose labels count GPUs, and that offers these devices alone."""
    found = gpu_node(name, gpus=0, pool=place, labels={f"{GPU}.count": counts})
    plain = {key: amount for key, amount in found["status"]["capacity"].items() if key != GPU}
    return found | {"status": {"capacity": plain | offers, "allocatable": plain | offers}}


def pod(name: str, place: str, limits: dict[str, str], **spec: object) -> Json:
    found = gpu_pod(name, place, gpus=0, nodeSelector={POOL: place})
    found["spec"]["containers"][0]["resources"]["limits"] = limits
    return found | {"spec": found["spec"] | spec}


def pods(place: str) -> list[Json]:
    template = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    return [
        pod("unchanged", place, {GPU: "2"}),
        pod("by-class", place, {f"deviceclass.resource.kubernetes.io/{DRIVER}": "1"}),
        pod("claiming", place, {}, resourceClaims=template),
        pod("machine", place, {CHIP: "1"}),
        pod("by-hand", place, {GPU: "3"}, nodeName=f"{place}-dra"),
    ]


@pytest.fixture
async def product(api: Api, control_plane: ControlPlane, place: str, tmp_path: Path) -> AsyncIterator[Product]:
    """The aggregator with the rights of the chart, not started yet, in a cluster with DRA."""
    made = [
        await api.create(each)
        for each in (
            device_class(),
            node(f"{place}-dra", place, offers={}, counts="4"),
            node(f"{place}-vm", place, offers={CHIP: "2"}, counts="2"),
            resource_slice(f"{place}-dra", gpus=4),
            claim_template(place),
        )
    ]
    async with watching(api, control_plane, place, tmp_path, values=(), environment={}) as found:
        yield found
    for each in made:
        if each["kind"] in ("DeviceClass", "ResourceSlice"):
            await api.delete(path(each))


def counted(samples: Samples) -> dict[str, int]:
    return {reason: int(total(samples, "gputally_unaccounted_gpu_pods", reason=reason)) for reason in COUNTED}


async def test_pods_with_gpus_by_dra_by_claim_and_passed_through_are_counted_and_named(
    api: Api, place: str, product: Product
) -> None:
    for each in pods(place):
        await api.create(each)
    running = f"/api/v1/namespaces/{place}/pods"
    items = await api.wait_for_items(running, lambda items: len(in_phase(items, "Running")) == len(WORDS))
    [unchanged] = [each for each in items if each["metadata"]["name"] == "unchanged"]
    assert unchanged["status"]["extendedResourceClaimStatus"]["requestMappings"][0]["resourceName"] == GPU

    await product.start()
    samples = await product.until(lambda samples: counted(samples) == COUNTED)

    assert total(samples, "gputally_unaccounted_gpus", reason="dra_extended_resource") == 2
    assert total(samples, "gputally_unaccounted_gpus", reason="not_offered") == 3
    assert total(samples, "gputally_unknown_device_nodes", resource=CHIP) == 1
    assert total(samples, "gputally_never_offered_gpus", pool="none") == 6
    assert total(samples, "gputally_capacity_gpus", state="unhealthy") == 0
    assert total(samples, "gputally_capacity_gpus", state="unsliced") == 6
    assert total(samples, "gputally_allocated_gpu_seconds_total") == 0
    await named(product, place)
    await ended(api, place, product)


async def named(product: Product, place: str) -> None:
    """In `why`, `top`, the report and the log."""
    for name, words in WORDS.items():
        found = await run("why", "--url", product.url, f"{place}/{name}")
        assert words in " ".join(found.out.split()), found
    top = await run("top", "--url", product.url, "--output", "json")
    assert {each["reason"]: each["pods"] for each in json.loads(top.out)["unaccounted"]} == {
        reason: pods for reason, pods in COUNTED.items() if pods
    }
    await product.query_until("SELECT uid FROM working WHERE kind = 'unaccounted-day'", lambda rows: len(rows) == 4)
    report = await run("report", "--ledger", str(product.ledger), "--window", "all")
    assert report.out.count("Not billed: ") == 4, report
    log = product.log.read_text()
    for text in (*(f"for example {place}/{name}" for name in ("claiming", "machine", "by-hand")), CHIP):
        assert log.count(text) == 1, log


async def ended(api: Api, place: str, product: Product) -> None:
    """They are counted no more once they are gone; a restart changes nothing before."""
    await product.kill()
    await product.start()
    assert counted(await product.scrape()) == COUNTED
    await asyncio.gather(*(api.delete(f"/api/v1/namespaces/{place}/pods/{name}", grace_seconds=0) for name in WORDS))
    await product.until(lambda samples: not any(counted(samples).values()))
