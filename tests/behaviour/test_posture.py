"""`gputally posture` on the API of a simulated cluster, as a separate process."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gputally_sim.cluster import SimCluster
from tests.behaviour.conftest import kubeconfig_for
from tests.cluster.api import Api
from tests.cluster.manifests import Json, gpu_node, gpu_pod, job, namespace, priority_class, resource_quota
from tests.fakes.command import Done, run


@pytest.fixture
async def cluster() -> AsyncIterator[SimCluster]:
    """Two classes, a quota of 2 GPUs in tenant-alpha, and a Job of pods with 4."""
    async with SimCluster(start_us=time.time_ns() // 1000) as cluster, Api(cluster.url, "any") as api:
        for manifest in (
            namespace("tenant-alpha"),
            gpu_node("node-0", gpus=8),
            priority_class("gpu-training", 1000),
            priority_class("gpu-batch", 400),
            resource_quota("gpus", "tenant-alpha", gpus=2),
            gpu_pod("notebook", "tenant-alpha", gpus=1, priorityClassName="gpu-batch"),
            job(gpu_pod("train", "tenant-alpha", gpus=4, priorityClassName="gpu-batch"), backoffLimit=3),
        ):
            await api.create(manifest)
        yield cluster


async def posture(cluster: SimCluster, tmp_path: Path, *arguments: str) -> Done:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(kubeconfig_for(cluster.url)))
    return await run("posture", "--kubeconfig", kubeconfig, *arguments)


def checks(document: Json) -> list[tuple[str, str]]:
    return [(each["check"], each["object"]["name"]) for each in document["findings"]]


async def test_a_cluster_is_read_and_judged(cluster: SimCluster, tmp_path: Path) -> None:
    done = await posture(cluster, tmp_path, "--output", "json")

    document = json.loads(done.out)
    assert (done.status, done.err) == (1, "")
    assert document["source"] == cluster.url
    assert [(each["name"], each["is_system"]) for each in document["classes"]] == [
        ("system-node-critical", True),
        ("system-cluster-critical", True),
        ("gpu-training", False),
        ("gpu-batch", False),
    ]
    assert document["capacity"]["physical"] == 8
    assert [(each["hard"], each["offered"]) for each in document["sums"]] == [(2, 8)]
    assert checks(document) == [("request-above-quota", "train"), ("retries-spent-on-preemptions", "train")]


async def test_a_resource_that_the_server_lacks_is_named_and_the_others_are_judged(
    cluster: SimCluster, tmp_path: Path
) -> None:
    document = json.loads((await posture(cluster, tmp_path, "--output", "json")).out)

    [missing] = document["unchecked"]
    assert missing["resource"] == "statefulsets"
    assert "404" in missing["why"]
    assert "grace-below-save-time" in missing["incomplete"]


async def test_what_is_forbidden_degrades_only_its_part(cluster: SimCluster, tmp_path: Path) -> None:
    cluster.faults.forbidden |= {"resourcequotas", "nodes"}

    done = await posture(cluster, tmp_path, "--output", "json")

    document = json.loads(done.out)
    assert done.status == 1
    assert (document["quotas"], document["capacity"]) == (None, None)
    assert checks(document) == [("retries-spent-on-preemptions", "train")]
    by_resource = {each["resource"]: each for each in document["unchecked"]}
    assert "grant list on resourcequotas in API group ''" in by_resource["resourcequotas"]["why"]
    assert "request-above-quota" in by_resource["resourcequotas"]["impossible"]
    assert by_resource["nodes"]["impossible"] == []


async def test_forbidden_classes_leave_what_needs_none(cluster: SimCluster, tmp_path: Path) -> None:
    cluster.faults.forbidden |= {"priorityclasses"}

    document = json.loads((await posture(cluster, tmp_path, "--output", "json")).out)

    assert document["classes"] is None
    assert ("request-above-quota", "train") in checks(document)


async def test_a_caller_who_may_list_nothing_is_told_the_first_missing_permission(
    cluster: SimCluster, tmp_path: Path
) -> None:
    cluster.faults.forbidden |= {
        *("priorityclasses", "resourcequotas", "poddisruptionbudgets", "nodes", "namespaces", "pods"),
        *("jobs", "cronjobs", "deployments"),
    }

    done = await posture(cluster, tmp_path)

    assert done.status == 3
    assert "grant list on priorityclasses in API group 'scheduling.k8s.io'" in done.err


async def test_long_lists_are_read_in_pages(cluster: SimCluster, tmp_path: Path) -> None:
    for number in range(510):
        cluster.registry.create("namespaces", {"metadata": {"name": f"place-{number}"}})
        quota = resource_quota("gpus", f"place-{number}", gpus=1)
        cluster.registry.create("resourcequotas", quota, f"place-{number}")

    document = json.loads((await posture(cluster, tmp_path, "--output", "json")).out)

    assert len(document["quotas"]) == 511


async def test_a_server_that_does_not_answer_is_exit_status_3(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(kubeconfig_for("http://127.0.0.1:1")))

    done = await run("posture", "--kubeconfig", kubeconfig)

    assert (done.status, done.out) == (3, "")
