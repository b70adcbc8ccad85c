"""GPU sharing is described by node labels, which may appear late and vanish: on both clusters."""

from collections.abc import Mapping

import pytest

from tests.behaviour.product import Rows, total
from tests.behaviour.published import differences
from tests.behaviour.stage import Stage
from tests.cluster.manifests import GPU, Json, conduct, gpu_node, gpu_pod
from tests.cluster.objects import Items, condition, container_state, in_phase, seconds

SLICE = "nvidia.com/mig-1g.10gb"
MODEL = "NVIDIA-A100-SXM4-80GB"
SHARES = {GPU: 250_000, f"{SLICE}.shared": 47_619, "nvidia.com/mig-3g.40gb": 428_571}
"""A quarter of a GPU, a third of a seventh, and a slice that is not shared."""
LABELS = {
    f"{GPU}.product": f"{MODEL}-SHARED",
    f"{GPU}.count": "2",
    f"{GPU}.replicas": "4",
    f"{SLICE}.replicas": "3",
    "nvidia.com/mig-3g.40gb.replicas": "1",
    "nvidia.com/mig.strategy": "mixed",
}
ALLOCATED = """
SELECT a.name, s.resource, s.quantity, s.start_us, s.end_us, s.gpu_model, s.price_key NOTNULL
FROM current_segments s JOIN allocations a ON a.pod_uid = s.pod_uid AND a.revision = s.revision
"""


CONTRADICTORY = {f"{GPU}.product": MODEL, f"{GPU}.count": "1", f"{GPU}.replicas": "1"}
GKE = {
    "cloud.google.com/gke-accelerator": MODEL,
    "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
    "cloud.google.com/gke-max-shared-clients-per-gpu": "50",
}


def shared_node(labels: Mapping[str, str]) -> Json:
    """Two GPUs: one with time-slicing, one with MIG slices, some of which are shared."""
    node = gpu_node("node-0")
    kept = {key: value for key, value in node["metadata"]["labels"].items() if not key.startswith("nvidia.com/")}
    node["metadata"]["labels"] = {**kept, **labels}
    offered = {GPU: "4", f"{SLICE}.shared": "12", "nvidia.com/mig-3g.40gb": "1"}
    for amounts in node["status"].values():
        amounts.update(offered)
    return node


def pod(name: str, resource: str, **life: str) -> Json:
    manifest = gpu_pod(name, "ml", annotations=conduct(**life))
    manifest["spec"]["containers"][0]["resources"]["limits"] = {resource: "1"}
    return manifest


async def furnish(stage: Stage, labels: Mapping[str, str]) -> None:
    await stage.furnish(nodes=0, gpus=0, tiers={}, teams={"ml": "research"})
    await stage.create(shared_node(labels))
    await stage.product.start()


async def test_each_resource_of_a_node_counts_by_its_own_replicas(stage: Stage) -> None:
    await furnish(stage, LABELS)
    await stage.create(*(pod(f"pod-{i}", resource, run_for="2s") for i, resource in enumerate(SHARES)))
    ended = await stage.pods(lambda items: len(in_phase(items, "Succeeded")) == len(SHARES))

    samples = await stage.product.released()
    assert exact(await stage.product.query_until(ALLOCATED, lambda _: True)) == expected(ended)
    assert total(samples, "gputally_allocated_gpu_seconds_total") == sum(expected(ended).values()) / 1e6
    assert differences(samples) == {0}


async def test_node_labels_that_appear_late_and_vanish_change_no_share(stage: Stage) -> None:
    """One pod ends and is deleted before they appear; one starts while they are absent, after a restart."""
    await furnish(stage, {})
    await stage.create(pod("early", GPU, run_for="1s"), pod("long", GPU))
    await stage.pods(lambda items: len(in_phase(items, "Succeeded")) == 1)
    [early] = in_phase(await stage.pods(lambda items: len(items) == 2), "Succeeded")
    await stage.api.delete("/api/v1/namespaces/ml/pods/early", grace_seconds=0)
    await stage.product.until(lambda samples: total(samples, "gputally_unpriced_gpu_seconds_total") > 0)

    await stage.api.patch("/api/v1/nodes/node-0", {"metadata": {"labels": LABELS}})
    await stage.product.until(lambda samples: total(samples, "gputally_unpriced_gpus") == 0)
    await stage.api.patch("/api/v1/nodes/node-0", {"metadata": {"labels": dict.fromkeys(LABELS)}})
    await stage.product.kill()
    await stage.product.start()
    await stage.create(pod("later", f"{SLICE}.shared", run_for="1s"))
    await stage.pods(lambda items: len(in_phase(items, "Succeeded")) == 1)
    await stage.api.patch("/api/v1/nodes/node-0", {"metadata": {"labels": LABELS}})
    ended = [early, *in_phase(await stage.pods(lambda items: len(items) == 2), "Succeeded")]

    rows = await stage.product.query_until(ALLOCATED, all_recorded)
    assert {(row[2], row[5], row[6]) for row in rows if row[0] != "later"} == {(250_000, MODEL, 1)}
    assert exact([row for row in rows if row[0] != "long"]) == expected(ended)


@pytest.mark.parametrize(("labels", "conflicts"), [(CONTRADICTORY, 1), (GKE, 0)])
async def test_fifty_units_of_one_gpu_cost_one_gpu_whoever_labels_the_node(
    stage: Stage, labels: Mapping[str, str], conflicts: int
) -> None:
    """GPU Feature Discovery may know of no replicas, and GKE runs without it."""
    await stage.furnish(nodes=0, gpus=0, tiers={}, teams={"ml": "research"})
    node = shared_node(labels)
    for amounts in node["status"].values():
        amounts.update({GPU: "50", f"{SLICE}.shared": "0", "nvidia.com/mig-3g.40gb": "0"})
    await stage.create(node)
    await stage.product.start()
    await stage.create(pod("one", GPU))
    await stage.pods(lambda items: len(in_phase(items, "Running")) == 1)

    rows = await stage.product.query_until(ALLOCATED, lambda rows: len(rows) > 0)
    assert {(row[2], row[5]) for row in rows} == {(20_000, MODEL)}
    samples = await stage.product.until(lambda samples: total(samples, "gputally_capacity_gpus", state="allocated") > 0)
    assert total(samples, "gputally_capacity_gpus") == 1
    assert total(samples, "gputally_gpu_label_conflict_nodes", reason="more_units") == conflicts


async def test_a_gpu_that_fails_under_its_pods_changes_no_bill(stage: Stage) -> None:
    """Discovery counts it no longer, while the kubelet still offers it; then gputally restarts."""
    await stage.furnish(nodes=0, gpus=0, tiers={}, teams={"ml": "research"})
    await stage.create(gpu_node("node-0", gpus=2))
    await stage.product.start()
    await stage.create(gpu_pod("both", "ml", gpus=2))
    await stage.pods(lambda items: len(in_phase(items, "Running")) == 1)
    await stage.product.until(lambda samples: total(samples, "gputally_capacity_gpus", state="allocated") == 2)

    await stage.api.patch("/api/v1/nodes/node-0", {"metadata": {"labels": {f"{GPU}.count": "1"}}})
    await stage.product.until(lambda samples: total(samples, "gputally_gpu_label_conflict_nodes") == 1)
    await stage.product.kill()
    await stage.product.start()
    samples = await stage.product.until(lambda samples: total(samples, "gputally_gpu_label_conflict_nodes") == 1)

    assert total(samples, "gputally_capacity_gpus") == total(samples, "gputally_capacity_gpus", state="allocated") == 2
    assert {row[2] for row in await stage.product.query_until(ALLOCATED, lambda _: True)} == {2_000_000}


def all_recorded(rows: Rows) -> bool:
    """Whether the ledger has the three pods and the ends of the ended ones."""
    return len({row[0] for row in rows}) == 3 and all(row[4] or row[0] == "long" for row in rows)


def exact(rows: list[tuple[object, ...]]) -> dict[object, int]:
    """µGPU-seconds by pod."""
    found: dict[object, int] = {}
    for name, _, quantity, start_us, end_us, model, is_priced in rows:
        assert (model, is_priced) == (MODEL, 1)
        assert isinstance(quantity, int)
        assert isinstance(start_us, int)
        assert isinstance(end_us, int)
        found[name] = found.get(name, 0) + quantity * (end_us - start_us) // 10**6
    return found


def expected(ended: Items) -> dict[object, int]:
    """µGPU-seconds by pod, from the API's times."""
    return {
        pod["metadata"]["name"]: SHARES[next(iter(pod["spec"]["containers"][0]["resources"]["limits"]))]
        * round(
            seconds(container_state(pod, "terminated")["finishedAt"])
            - seconds(condition(pod, "PodScheduled")["lastTransitionTime"])
        )
        for pod in ended
    }
