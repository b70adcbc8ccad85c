"""Every way to lose GPUs on a real control plane has its cause, and a preemption all of its steps."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.behaviour.product import Product, total
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import POOL, Json, conduct, gpu_node, gpu_pod, job, path, priority_class

pytestmark = pytest.mark.e2e

HOSTNAME = "kubernetes.io/hostname"
RECLAIM: Json = {"type": "PreemptionScheduled", "status": "True", "reason": "SpotEvictionIncoming"}
SPOT = {"karpenter.sh/capacity-type": "spot"}


@pytest.fixture
async def product(control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Product]:
    product = Product(tmp_path, control_plane.kubeconfig("admin"))
    await product.start()
    yield product
    await product.kill()


class Scene:
    """Each pod has a node of its own, with the same name after that of the place."""

    def __init__(self, api: Api, place: str) -> None:
        self.api = api
        self.place = place

    def node(self, name: str) -> str:
        return f"/api/v1/nodes/{self.place}-{name}"

    def pod(self, name: str, *, where: dict[str, str] | None = None, tier: str = "") -> Json:
        ends, where = conduct(stop_after="2s"), where or {HOSTNAME: f"{self.place}-{name}"}
        return gpu_pod(name, self.place, annotations=ends, nodeSelector=where, priorityClassName=tier)

    async def run(self, name: str, *, labels: dict[str, str] | None = None) -> str:
        """A running pod; returns its path."""
        await self.api.create(gpu_node(f"{self.place}-{name}", gpus=1, pool=self.place, labels=labels))
        pod = await self.api.create(self.pod(name))
        await self.api.wait_for(path(pod), is_running)
        return path(pod)

    async def evict(self, pod: str) -> None:
        meta = {"name": pod.rpartition("/")[2], "namespace": self.place}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
        await self.api.call("POST", f"{pod}/eviction", json=eviction)

    async def announce(self, name: str, reason: str, component: str, *, uid: bool) -> None:
        """An Event on a node, as the older API of client-go sends it."""
        node = (await self.api.get(self.node(name)))["metadata"]
        named = {"kind": "Node", "apiVersion": "v1", "name": node["name"]}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {
            "metadata": {"name": f"{node['name']}.17", "namespace": "default"},
            "involvedObject": named | ({"uid": node["uid"]} if uid else {"namespace": "default"}),
            "type": "Warning",
            "reason": reason,
            "message": "announced",
            "source": {"component": component},
            "reportingComponent": component,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self.api.call("POST", "/api/v1/namespaces/default/events", json=event)

    async def taint(self, name: str, key: str, effect: str) -> None:
        await self.api.patch(self.node(name), {"spec": {"taints": [{"key": key, "effect": effect}]}})


def is_running(pod: Json | None) -> bool:
    return pod is not None and pod["status"]["phase"] == "Running"


async def test_each_cause_is_told_apart(api: Api, place: str, product: Product) -> None:
    scene = Scene(api, place)
    drained, deleted, _ = [await scene.run(name) for name in ("drained", "deleted", "tainted")]
    reclaimed, shrunk = await scene.run("reclaimed", labels=SPOT), await scene.run("shrunk")
    announced, noticed = await scene.run("announced", labels=SPOT), await scene.run("noticed", labels=SPOT)

    await scene.evict(drained)
    await api.delete(deleted)
    await scene.taint("tainted", "maintenance", "NoExecute")
    await api.patch(f"{scene.node('reclaimed')}/status", {"status": {"conditions": [RECLAIM]}})
    await scene.evict(reclaimed)
    await scene.taint("shrunk", "ToBeDeletedByClusterAutoscaler", "NoSchedule")
    await scene.evict(shrunk)
    await scene.announce("announced", "SpotInterrupted", "karpenter", uid=True)
    await scene.evict(announced)
    await scene.announce("noticed", "SpotInterruption", "aws-node-termination-handler", uid=False)
    await scene.evict(noticed)

    causes: dict[str, str] = dict(
        await product.query_until(
            f"SELECT victim_name, cause FROM disruptions WHERE victim_namespace = '{place}' AND released_us NOTNULL "
            "ORDER BY victim_name",
            lambda rows: len(rows) == 7 and rows[0][1] == rows[3][1] == "spot_reclaim",
        )
    )
    assert causes == {
        "announced": "spot_reclaim",
        "deleted": "deletion",
        "drained": "eviction",
        "noticed": "spot_reclaim",
        "reclaimed": "spot_reclaim",
        "shrunk": "scale_down",
        "tainted": "taint",
    }
    samples = await product.scrape()
    for cause, pods in Counter(causes.values()).items():
        assert total(samples, "gputally_disruptions_total", cause=cause) == pods


async def test_a_preemption_is_followed_until_its_replacement_runs(api: Api, place: str, product: Product) -> None:
    scene = Scene(api, place)
    for tier, value in (("low", 10), ("high", 1000)):
        await api.create(priority_class(f"{place}-{tier}", value))
    await api.create(gpu_node(f"{place}-only", gpus=1, pool=place))
    anywhere = {POOL: place}
    training = await api.create(job(scene.pod("train", where=anywhere, tier=f"{place}-low"), backoffLimit=6))
    pods = f"/api/v1/namespaces/{place}/pods"
    await api.wait_for_items(pods, lambda items: any(map(is_running, items)))
    await api.create(scene.pod("serve", where=anywhere, tier=f"{place}-high"))
    tiers = {"victim_tier": f"{place}-low", "preemptor_tier": f"{place}-high"}
    await product.until(lambda samples: total(samples, "gputally_preempting_gpus", **tiers) == 1)
    await api.wait_for(f"{pods}/serve", is_running)
    await api.create(gpu_node(f"{place}-more", gpus=1, pool=place))

    [row] = await product.query_until(
        "SELECT victim_uid, replacement_uid, requested_us - decided_us, stopped_us - requested_us, "
        "reused_us - released_us, replaced_us - decided_us "
        f"FROM disruptions WHERE victim_namespace = '{place}' AND replaced_us NOTNULL AND cause = 'preemption'",
        lambda rows: len(rows) == 1,
        within=40,
    )
    assert total(await product.scrape(), "gputally_preempting_gpus", **tiers) == 0
    victim, replacement, *steps = row
    assert [pod["metadata"]["uid"] for pod in await running(api, pods, training)] == [replacement]
    assert victim != replacement
    request_s, stop_s, reuse_s, replace_s = (us / 1e6 for us in steps)
    assert 0 <= request_s <= 1
    assert 2 <= stop_s <= 4
    assert 0 <= reuse_s <= 3
    assert replace_s >= stop_s

    shown = listed(product, place)
    assert [(each["cause"], each["preemptor"], each["stop_seconds"]) for each in shown] == [
        ("preemption", "serve", stop_s)
    ]


@pytest.mark.campaign
async def test_the_pods_of_a_deleted_node_are_lost_with_it(api: Api, place: str, product: Product) -> None:
    """PodGC waits 40 s before it asks again whether the node is gone."""
    scene = Scene(api, place)
    await scene.run("lost")
    await api.delete(scene.node("lost"))

    causes = await product.query_until(
        f"SELECT cause FROM disruptions WHERE victim_namespace = '{place}'", lambda rows: len(rows) == 1, within=150
    )
    assert causes == [("node_lost",)]


async def running(api: Api, pods: str, training: Json) -> list[Json]:
    """The running pods of the Job."""
    name = training["metadata"]["name"]
    found = await api.list(pods, labelSelector=f"batch.kubernetes.io/job-name={name}")
    return [pod for pod in found["items"] if is_running(pod) and "deletionTimestamp" not in pod["metadata"]]


def listed(product: Product, place: str) -> list[Json]:
    """What `gputally preemptions` prints."""
    command = ["preemptions", "--ledger", str(product.ledger), "--window", "all", "--where", f"namespace={place}"]
    done = subprocess.run(
        [sys.executable, "-m", "gputally", *command, "--output", "json"], capture_output=True, text=True, check=True
    )
    rows: list[Json] = json.loads(done.stdout)["rows"]
    return rows
