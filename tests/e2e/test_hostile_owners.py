"""Forged ownerReferences of a tenant: on a real API server, with the chart's role, checked in the audit log."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from gputally.kube.watched import resources
from gputally.model.rules import Rules
from tests.behaviour.product import Product, Samples, total
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import Json, gpu_pod, job, metadata, namespace
from tests.docs.pages import ROOT
from tests.e2e.owned import KINDS, controller, furnish
from tests.e2e.rights import Right, grant, logged_in, rights_of, until_granted
from tests.e2e.test_minimal_rights import JOBS
from tests.prometheus.daemon import eventually

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets of killed servers
]

logger = logging.getLogger(__name__)

HONEST, HOSTILE = "honest", "hostile"
ACCOUNT = "aggregator"
LARGE_PODS, LARGE_BYTES = 1500, 40_000
"""A list of all pods would return 60 MB."""
FOREIGN_CONFIG_MAP = "extension-apiserver-authentication"
"""A ConfigMap in kube-system that every API server creates."""
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [f"system:serviceaccount:{HONEST}:{ACCOUNT}"]}, {"level": "None"}],
}
FORGED = [
    *[{"kind": "../../pods#", "name": f"list-{number}"} for number in range(8)],
    *[{"kind": "../../pods?watch=true#", "name": f"watch-{number}"} for number in range(8)],
    {"kind": "ConfigMap", "name": f"../../kube-system/configmaps/{FOREIGN_CONFIG_MAP}"},
    {"kind": "ConfigMap", "name": f"..%2F..%2Fkube-system%2Fconfigmaps%2F{FOREIGN_CONFIG_MAP}"},
    {"kind": "Node", "name": ".."},
    {"apiVersion": "v1?x=#", "kind": "Pod", "name": "version"},
    {"apiVersion": "../version?x=", "kind": "Pod", "name": "group"},
    {"apiVersion": "invented.example/v1", "kind": "Pod", "name": "invented"},
    {"kind": "Pod", "name": "?watch=true#"},
    {"kind": "Secret", "name": "token"},
    {"apiVersion": "apps/v1", "kind": "Invented", "name": "invented"},
    {"kind": "Pod\r\nHost: elsewhere", "name": "line\r\nGET /api/v1/secrets HTTP/1.1\r\n"},
]

_APPS = f"/apis/apps/v1/namespaces/{HONEST}"
EXPECTED = {
    *("/apis", "/api/v1", "/apis/apps/v1", "/apis/ml.example/v1"),
    *(f"{_APPS}/replicasets/{name}" for name in ("replicaset", "hand-made")),
    *(f"{_APPS}/{kind}s/{kind}" for kind in ("deployment", "statefulset", "daemonset")),
    *(f"/api/v1/namespaces/{HONEST}/configmaps/top-{kind.lower()}" for kind in (*KINDS, "book")),
    f"/apis/ml.example/v1/namespaces/{HONEST}/buecher/book",
    f"/api/v1/namespaces/{HOSTILE}/pods/%3Fwatch%3Dtrue%23",
    f"/api/v1/namespaces/{HOSTILE}/secrets/token",
}
"""Every request that the walk may send. The last two are forbidden; each reads one object of the tenant."""


class Cluster(NamedTuple):
    """A control plane, a client with admin rights, and the audit log of the product's ServiceAccount."""

    control_plane: ControlPlane
    api: Api
    log: Path

    def requests(self) -> list[tuple[str, str]]:
        """Verb and URI of every request so far."""
        entries = map(json.loads, self.log.read_text().splitlines())
        return [(entry["verb"], entry["requestURI"]) for entry in entries]


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    folder = tmp_path / "audited"
    folder.mkdir()
    policy, log = folder / "policy.json", folder / "audit.log"
    policy.write_text(json.dumps(POLICY))
    arguments = [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]
    async with (
        ControlPlane(folder, api_server_args=arguments) as control_plane,
        Api(control_plane.url, control_plane.token("admin"), control_plane.ca_file) as api,
    ):
        for name in (HONEST, HOSTILE):
            await api.create(namespace(name))
        await asyncio.gather(*(large_pods(api, first) for first in range(4)))
        yield Cluster(control_plane, api, log)


async def large_pods(api: Api, first: int) -> None:
    """Create every fourth large pod; they request no GPU and are never scheduled."""
    gates = [{"name": "example.com/never"}]
    for number in range(first, LARGE_PODS, 4):
        large = gpu_pod(f"large-{number}", HOSTILE, gpus=0, schedulingGates=gates)
        large["metadata"]["annotations"] = {"padding": "x" * LARGE_BYTES}
        await api.create(large)


@pytest.fixture
async def product(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Product]:
    """The aggregator with the permissions of the chart, and `get` on the test's custom resource."""
    rights = [*chart_rights(), ("ml.example", "buecher", "get")]
    await grant(cluster.api, ACCOUNT, HONEST, rights)
    await until_granted(cluster.api, ACCOUNT, HONEST, rights)
    kubeconfig = await logged_in(cluster.api, cluster.control_plane, ACCOUNT, HONEST, tmp_path / "kubeconfig")
    product = Product(tmp_path, kubeconfig)
    yield product
    await product.kill()


async def until_watching(cluster: Cluster) -> None:
    """Wait until the audit log has all watches: all later requests are lookups for the tenant's pods."""

    async def watched() -> set[str]:
        return {uri.partition("?")[0] for verb, uri in cluster.requests() if verb == "watch"}

    wanted = {resource.path for resource in resources(Rules())}
    await eventually(watched, lambda found: found >= wanted, within=30, what="the watches in the audit log")


async def test_forged_owners_read_no_foreign_object_and_delay_no_other_lookup(
    cluster: Cluster, product: Product
) -> None:
    await define(cluster.api)
    await product.start()
    await until_watching(cluster)
    started, before_mib = len(cluster.requests()), peak_mib(product)

    for number, reference in enumerate(FORGED):
        await cluster.api.create(forged(number, reference))
    await furnish(cluster.api, HONEST)
    await cluster.api.create(job(gpu_pod("train", HONEST)))
    await cluster.api.create(gpu_pod("page", HONEST) | owned_by(await a_book(cluster.api)))
    await product.query_until(JOBS.format(place=HONEST), lambda rows: rows == honest_jobs())
    samples = await product.until(lambda samples: lookups(samples, "unknown_kind") >= 1)

    asked = cluster.requests()[started:]
    logger.info("peak memory %.0f MiB, then %.0f MiB; %d requests", before_mib, peak_mib(product), len(asked))
    assert sorted({uri for verb, uri in asked if verb != "get"}) == []
    assert {uri for _, uri in asked} <= EXPECTED
    assert peak_mib(product) < before_mib + 20
    assert lookups(samples, "found") == 6
    assert lookups(samples, "forbidden") >= 2
    assert lookups(samples, "failed") == lookups(samples, "given_up") == 0

    assert await product.stop() == 0
    restarted = len(cluster.requests())
    await product.start()
    await product.query_until(JOBS.format(place=HONEST), lambda rows: rows == honest_jobs())
    again = cluster.requests()[restarted:]
    assert {uri for verb, uri in again if verb == "get"} <= EXPECTED
    assert len([uri for verb, uri in again if verb == "list" and uri == "/api/v1/pods"]) <= 1
    assert peak_mib(product) < before_mib + 20


def lookups(samples: Samples, result: str) -> float:
    return total(samples, "gputally_owner_lookups_total", result=result)


def honest_jobs() -> list[tuple[str, str]]:
    tops = [("ConfigMap", f"top-{kind.lower()}") for kind in (*KINDS, "book")]
    return sorted([*tops, ("Job", "train")], key=lambda job: job[1])


async def define(api: Api) -> None:
    """Define a kind with an irregular plural."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    spec = {
        "group": "ml.example",
        "names": {"kind": "Buch", "plural": "buecher"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    name = metadata("buecher.ml.example")
    kind = "CustomResourceDefinition"
    await api.create({"apiVersion": "apiextensions.k8s.io/v1", "kind": kind, "metadata": name, "spec": spec})
    async with asyncio.timeout(30):
        while "ml.example" not in {group["name"] for group in (await api.get("/apis"))["groups"]}:  # noqa: ASYNC110 - a server sends no signal
            await asyncio.sleep(0.1)


async def a_book(api: Api) -> Json:
    """Create an object of that kind, owned by a ConfigMap."""
    top = await api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("top-book", HONEST)})
    owned = metadata("book", HONEST) | {"ownerReferences": [controller(top)]}
    book = {"apiVersion": "ml.example/v1", "kind": "Buch", "metadata": owned}
    return await api.call("POST", f"/apis/ml.example/v1/namespaces/{HONEST}/buecher", json=book)


def owned_by(owner: Json) -> Json:
    """The metadata of the pod `page`."""
    return {"metadata": metadata("page", HONEST) | {"ownerReferences": [controller(owner)]}}


def forged(number: int, reference: Json) -> Json:
    """A pod that is never scheduled, with an owner that does not exist."""
    pod = gpu_pod(f"forged-{number}", HOSTILE, schedulingGates=[{"name": "example.com/never"}])
    owner = {"apiVersion": "v1", "uid": f"forged-{number}", "controller": True} | reference
    pod["metadata"]["ownerReferences"] = [owner]
    return pod


def chart_rights() -> list[Right]:
    """The permissions in the manifest; a chart test checks that the chart's role is equal."""
    documents = yaml.safe_load_all((ROOT / "deploy" / "rbac.yaml").read_text())
    return rights_of(next(each["rules"] for each in documents if each["kind"] == "ClusterRole"))


def peak_mib(product: Product) -> float:
    return product.peak_bytes / 2**20
