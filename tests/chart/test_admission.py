"""Checks rendered manifests on a real API server with the Prometheus Operator's CRDs and Pod Security."""

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest
import yaml

from tests.chart.helm import objects, of_kind, pods, rendered
from tests.chart.matrix import MATRIX, MONITORED
from tests.chart.schemas import operator_crds
from tests.cluster.api import Api, Refused
from tests.cluster.manifests import Json, collection, namespace, path
from tests.cluster.objects import condition

pytestmark = pytest.mark.e2e

NUMBERS = count(1)
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DRY = {"dryRun": "All", "fieldValidation": "Strict"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
LEVEL = "pod-security.kubernetes.io/enforce"
MONITORING = {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}, **MONITORED}
SETS = {**MATRIX, "monitored": MONITORING}


@pytest.fixture
async def operator(api: Api) -> Api:
    """The API server with the Prometheus Operator's CRDs that the chart uses; they remain installed."""
    for name in ("podmonitors", "prometheusrules", "servicemonitors"):
        definition = (operator_crds() / f"monitoring.coreos.com_{name}.yaml").read_text()
        await api.create_once(yaml.load(definition, yaml.CSafeLoader))
        await api.wait_for(f"{DEFINITIONS}/{name}.monitoring.coreos.com", established)
    return api


def established(definition: Json | None) -> bool:
    return bool(definition) and condition(definition or {}, "Established").get("status") == "True"


@pytest.fixture
async def places(api: Api) -> AsyncIterator[dict[str, str]]:
    """A new namespace for each Pod Security level, by level."""
    number = next(NUMBERS)
    names = {level: f"{level}-{number}" for level in ("privileged", "baseline", "restricted")}
    for level, name in names.items():
        await api.create(namespace(name, labels={LEVEL: level}))
    await api.create_once(
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "n"}
    )
    yield names
    for name in names.values():
        await api.delete(f"/api/v1/namespaces/{name}")


@pytest.mark.parametrize("name", SETS)
async def test_every_object_is_accepted(name: str, operator: Api, places: dict[str, str], tmp_path: Path) -> None:
    for each in objects(rendered(SETS[name], tmp_path)):
        await applied(operator, each, places["privileged"])


async def test_an_invalid_monitor_is_rejected(operator: Api, places: dict[str, str], tmp_path: Path) -> None:
    monitor = of_kind(objects(rendered(MONITORING, tmp_path)), "ServiceMonitor")
    monitor["spec"]["endpoints"][0]["interval"] = "often"

    with pytest.raises(Refused, match=r"spec\.endpoints\[0\]\.interval"):
        await applied(operator, monitor, places["privileged"])


async def applied(api: Api, found: Json, place: str) -> None:
    """Validate the whole object with a dry-run server-side apply."""
    clusterwide = found["kind"].startswith("Cluster")
    metadata = found["metadata"] | ({} if clusterwide else {"namespace": place})
    await api.call(
        "PATCH",
        path({**found, "metadata": metadata}),
        params={**DRY, "fieldManager": "tests", "force": "true"},
        json={**found, "metadata": metadata},
        headers=APPLY,
    )


@pytest.mark.parametrize("name", MATRIX)
async def test_the_aggregator_meets_the_restricted_standard(
    name: str, api: Api, places: dict[str, str], tmp_path: Path
) -> None:
    found = pods(objects(rendered(MATRIX[name], tmp_path)))

    for each in (pod for name, pod in found.items() if not name.endswith("-agent")):
        await admitted(api, each, places["restricted"])


async def test_an_agent_violates_the_baseline_standard_only_by_its_host_path(
    api: Api, places: dict[str, str], tmp_path: Path
) -> None:
    agent = pods(objects(rendered({}, tmp_path)))["gputally-agent"]

    await admitted(api, agent, places["privileged"])
    with pytest.raises(Refused) as refused:
        await admitted(api, agent, places["baseline"])
    assert str(refused.value).partition('violates PodSecurity "baseline:latest": ')[2] == (
        'hostPath volumes (volume "pod-resources")'
    )


@pytest.mark.parametrize("name", [name for name in MATRIX if name != "aggregator-only"])
async def test_agents_meet_the_privileged_standard(name: str, api: Api, places: dict[str, str], tmp_path: Path) -> None:
    found = pods(objects(rendered(MATRIX[name], tmp_path)))

    await admitted(api, next(pod for name, pod in found.items() if name.endswith("-agent")), places["privileged"])


async def admitted(api: Api, pod: Json, place: str) -> None:
    """Validate the admission of the pod with a dry run."""
    metadata = {"name": "pod", "namespace": place, "labels": pod["metadata"]["labels"]}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod["spec"]}
    await api.call("POST", collection(made), params=DRY, json=made)
