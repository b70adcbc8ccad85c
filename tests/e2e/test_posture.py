"""`gputally posture` on a real API server and quota controller: scenario S2, read with minimal rights."""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest

from tests.cluster.api import Api, Refused
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import (
    Json,
    cluster_role_binding,
    conduct,
    deployment,
    gpu_node,
    gpu_pod,
    job,
    path,
    pod_disruption_budget,
    priority_class,
    resource_quota,
)
from tests.e2e.rights import Right, grant, logged_in, revoke, until_granted
from tests.fakes.command import run

pytestmark = pytest.mark.e2e

NUMBERS = count(1)
LISTED = (
    ("scheduling.k8s.io", "priorityclasses"),
    ("", "resourcequotas"),
    ("policy", "poddisruptionbudgets"),
    ("", "nodes"),
    ("", "namespaces"),
    ("", "pods"),
    ("batch", "jobs"),
    ("batch", "cronjobs"),
    ("apps", "deployments"),
    ("apps", "statefulsets"),
)
"""As in docs/permissions.md; pytorchjobs only where the cluster has them."""
RIGHTS: list[Right] = [(group, resource, "list") for group, resource in LISTED]


@pytest.fixture
async def tenant(api: Api, place: str) -> str:
    """S2 in a namespace, whose name begins those of its classes: two nodes of 8 GPUs, and a request above its quota."""

    def pod(name: str, tier: str, *, gpus: int = 1) -> Json:
        pool = {"gputally.io/pool": place}
        stop = conduct(stop_after="1s")
        return gpu_pod(name, place, gpus=gpus, annotations=stop, priorityClassName=f"{place}-{tier}", nodeSelector=pool)

    for manifest in (
        *(gpu_node(f"{place}-node-{number}", gpus=8, pool=place) for number in range(2)),
        priority_class(f"{place}-gpu-training", 1000),
        priority_class(f"{place}-gpu-serving", 800),
        priority_class(f"{place}-gpu-batch", 400),
        priority_class(f"{place}-gpu-interactive", 200, preempts=False),
        resource_quota("training", place, gpus=6, priority_class=f"{place}-gpu-training"),
        resource_quota("interactive", place, gpus=2, priority_class=f"{place}-gpu-interactive"),
    ):
        await api.create(manifest)
    await enforced(api, pod("too-large", "gpu-training", gpus=8), "exceeded quota: training")
    await enforced(api, pod("too-large", "gpu-interactive", gpus=8), "exceeded quota: interactive")
    for manifest in (
        pod("notebook", "gpu-interactive"),
        deployment(pod("serve", "gpu-serving")),
        pod_disruption_budget("serve", place, labels={"app": "serve"}, min_available=1),
        job(pod("train", "gpu-training", gpus=8), backoffLimit=3),
        job(pod("batch", "gpu-batch"), backoffLimit=3),
    ):
        await api.create(manifest)
    return place


async def enforced(api: Api, pod: Json, refusal: str) -> None:
    """Wait until admission knows the quota: before that, it counts no pod, and later ones are not made up for."""
    async with asyncio.timeout(20):
        while True:
            try:
                await api.create(pod)
            except Refused as refused:
                if refusal in str(refused):
                    return
            else:
                await api.delete(path(pod), grace_seconds=0)
            await asyncio.sleep(0.05)


@pytest.fixture
async def account(api: Api, control_plane: ControlPlane, place: str, tmp_path: Path) -> AsyncIterator[Path]:
    """The kubeconfig of an account that may list what the command reads, and nothing else."""
    name = f"posture-{next(NUMBERS)}"
    made = await grant(api, name, place, RIGHTS)
    await until_granted(api, name, place, RIGHTS)
    yield await logged_in(api, control_plane, name, place, tmp_path / "kubeconfig")
    await revoke(api, made)


def of(place: str, document: Json, field: str) -> list[Json]:
    """The rows of this test: other tests have classes too."""
    return [each for each in document[field] if each["name"].startswith(f"{place}-")]


async def test_the_posture_of_four_tiers_is_read_with_the_right_to_list(tenant: str, account: Path) -> None:
    done = await run("posture", "--kubeconfig", account, "--output", "json")

    document = json.loads(done.out)
    assert (done.status, done.err) == (1, "")
    assert document["unchecked"] == []
    classes = {each["name"].removeprefix(f"{tenant}-"): each for each in of(tenant, document, "classes")}
    assert {name: (each["value"], each["preemption_policy"]) for name, each in classes.items()} == {
        "gpu-training": (1000, "PreemptLowerPriority"),
        "gpu-serving": (800, "PreemptLowerPriority"),
        "gpu-batch": (400, "PreemptLowerPriority"),
        "gpu-interactive": (200, "Never"),
    }
    by_name = {each["name"]: each for each in document["preemptions"]}
    assert f"{tenant}-gpu-interactive" in by_name[f"{tenant}-gpu-training"]["may_preempt"]
    assert by_name[f"{tenant}-gpu-interactive"]["may_preempt"] == []
    quotas = {each["name"]: each for each in document["quotas"] if each["namespace"] == tenant}
    assert (quotas["interactive"]["hard"], quotas["interactive"]["used"], quotas["interactive"]["headroom"]) == (
        2,
        1,
        1,
    )
    assert (quotas["training"]["hard"], quotas["training"]["used"], quotas["training"]["headroom"]) == (6, 0, 6)
    assert document["capacity"]["physical"] >= 16


async def test_its_findings_are_exact_and_the_api_server_agrees(api: Api, tenant: str, account: Path) -> None:
    document = json.loads((await run("posture", "--kubeconfig", account, "--output", "json")).out)

    found = sorted(
        (each["check"], each["object"]["kind"], each["object"]["name"].removeprefix(f"{tenant}-"))
        for each in document["findings"]
        if tenant in (each["object"]["namespace"], each["object"]["name"])
        or each["object"]["name"].startswith(f"{tenant}-")
    )
    assert [each for each in found if each[0] != "never-at-the-bottom"] == [
        ("budget-ignored-by-preemption", "PodDisruptionBudget", "serve"),
        ("class-without-quota", "Namespace", tenant),
        ("request-above-quota", "Job", "train"),
        ("retries-spent-on-preemptions", "Job", "batch"),
        ("serving-below-training", "PriorityClass", "gpu-serving"),
    ]
    too_large = gpu_pod("too-large", tenant, gpus=8, priorityClassName=f"{tenant}-gpu-training")
    with pytest.raises(Refused, match="exceeded quota: training"):
        await api.create(too_large)
    unknown = priority_class(f"{tenant}-higher", 10) | {"preemptionPolicy": "PreemptHigherPriority"}
    with pytest.raises(Refused, match="preemptionPolicy"):
        await api.create(unknown)


async def test_a_missing_right_is_named_and_the_others_are_used(
    api: Api, control_plane: ControlPlane, tenant: str, tmp_path: Path
) -> None:
    name = f"posture-{next(NUMBERS)}"
    rights = [right for right in RIGHTS if right[1] != "resourcequotas"]
    made = await grant(api, name, tenant, rights)
    await until_granted(api, name, tenant, rights)
    kubeconfig = await logged_in(api, control_plane, name, tenant, tmp_path / "fewer")

    document = json.loads((await run("posture", "--kubeconfig", kubeconfig, "--output", "json")).out)

    await revoke(api, made)
    [missing] = document["unchecked"]
    assert missing["resource"] == "resourcequotas"
    assert missing["why"].endswith("grant list on resourcequotas in API group ''")
    assert missing["impossible"] == ["request-above-quota", "replicas-above-quota", "class-without-quota"]
    assert document["quotas"] is None


async def test_the_role_view_lacks_only_classes_and_nodes(
    api: Api, control_plane: ControlPlane, tenant: str, tmp_path: Path
) -> None:
    name = f"posture-{next(NUMBERS)}"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": tenant}}
    binding = cluster_role_binding("view", user=name)
    binding["subjects"] = [{"kind": "ServiceAccount", "name": name, "namespace": tenant}]
    made = [await api.create(each) for each in (account, binding)]
    await until_granted(api, name, tenant, [right for right in RIGHTS if right[1] not in ("priorityclasses", "nodes")])
    kubeconfig = await logged_in(api, control_plane, name, tenant, tmp_path / "viewer")

    document = json.loads((await run("posture", "--kubeconfig", kubeconfig, "--output", "json")).out)

    await revoke(api, made)
    assert [each["resource"] for each in document["unchecked"]] == ["priorityclasses", "nodes"]
    assert (document["classes"], document["capacity"]) == (None, None)
    assert ("request-above-quota", "train") in [
        (each["check"], each["object"]["name"]) for each in document["findings"]
    ]
