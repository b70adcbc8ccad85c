"""GPU shares that the schedulers HAMi and KAI-Scheduler assign by annotations, on both clusters.

The tests bind the pods as those schedulers do.
"""

from tests.behaviour.product import total
from tests.behaviour.published import differences
from tests.behaviour.stage import Stage
from tests.cluster.manifests import GPU, Json, conduct, gpu_node, gpu_pod
from tests.cluster.objects import Items, condition, container_state, in_phase, seconds

MIB = 81_920
REGISTERED = "".join(f"GPU-{i},10,{MIB},100,NVIDIA-A100,0,true,{i},hami-core:" for i in range(2))
SHARES = """
SELECT a.name, s.resource, s.quantity, s.start_us / 1000000, s.end_us / 1000000
FROM current_segments s JOIN allocations a ON a.pod_uid = s.pod_uid AND a.revision = s.revision
"""


def hami_node() -> Json:
    """Two GPUs that are advertised as twenty devices."""
    node = gpu_node("node-0", gpus=2)
    node["metadata"]["annotations"]["hami.io/node-nvidia-register"] = REGISTERED
    for amounts in node["status"].values():
        amounts[GPU] = "20"
    return node


def hami_pod(name: str, *, gpus: int = 1, **of_each: int) -> Json:
    manifest = gpu_pod(name, "ml", gpus=gpus, annotations=conduct(run_for="4s"), schedulerName="hami-scheduler")
    names = {
        "memory": "nvidia.com/gpumem",
        "percentage": "nvidia.com/gpumem-percentage",
        "cores": "nvidia.com/gpucores",
    }
    asked = {names[key]: str(amount) for key, amount in of_each.items()}
    manifest["spec"]["containers"][0]["resources"]["limits"].update(asked)
    return manifest


def kai_pod(name: str, **asked: str) -> Json:
    annotations = {key.replace("_", "-"): text for key, text in asked.items()} | conduct(run_for="4s")
    return gpu_pod(name, "ml", gpus=0, annotations=annotations, schedulerName="kai-scheduler")


async def bind(stage: Stage, name: str, *, namespace: str = "ml", **annotations: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    if annotations:
        prefixed = {f"hami.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
        await stage.api.patch(path, {"metadata": {"annotations": prefixed}})
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    await stage.api.call("POST", f"{path}/binding", json=binding)


async def test_hami_pods_hold_the_shares_their_scheduler_assigned(stage: Stage) -> None:
    """Four pods divide the GPUs by memory: one requests a percentage, one is assigned less than it requests."""
    await stage.furnish(nodes=0, gpus=0, tiers={}, teams={"ml": "research"})
    await stage.create(hami_node())
    await stage.product.start()
    expected = {"quarter": 250_000, "half": 500_000, "eighth": 125_000, "default": 125_000, "both": 400_000}
    await stage.create(
        hami_pod("quarter", memory=MIB // 4, cores=90),
        hami_pod("half", percentage=50),
        hami_pod("eighth", memory=MIB // 8),
        hami_pod("default"),
        hami_pod("both", gpus=2, percentage=20),
    )
    for name in ("quarter", "half", "eighth", "both"):
        await bind(stage, name)
    await bind(stage, "default", vgpu_devices_allocated=f"GPU-1,NVIDIA,{MIB // 8},0:;")

    await reported_as_expected(stage, expected)


async def test_kai_pods_hold_their_fractions_and_the_reservation_pod_holds_nothing(stage: Stage) -> None:
    await stage.furnish(nodes=0, gpus=0, tiers={}, teams={"ml": "research", "kai-resource-reservation": "kai"})
    await stage.create(gpu_node("node-0", gpus=2, labels={f"{GPU}.memory": str(MIB)}))
    await stage.product.start()
    expected = {"half": 500_000, "memory": 250_000, "two": 500_000}
    reservation = gpu_pod("reserving", "kai-resource-reservation", gpus=2, labels={"runai-gpu-group": "group-1"})
    await stage.create(
        reservation,
        kai_pod("half", gpu_fraction="0.5"),
        kai_pod("memory", gpu_memory=str(MIB // 4)),
        kai_pod("two", gpu_fraction="0.25", gpu_fraction_num_devices="2"),
        kai_pod("none"),
    )
    await stage.product.until(lambda samples: total(samples, "gputally_pending_gpus") == 0.5 + 1 + 0.5)
    for name in (*expected, "none"):
        await bind(stage, name)

    await reported_as_expected(stage, expected)


async def reported_as_expected(stage: Stage, expected: dict[str, int]) -> None:
    """The ledger has these shares (µGPU) for the times from the API; the node has 2 GPUs."""
    samples = await stage.product.until(
        lambda samples: total(samples, "gputally_allocated_gpus") == sum(expected.values()) / 1e6
    )
    assert total(samples, "gputally_capacity_gpus") == 2
    ended = await stage.pods(lambda items: {*expected} <= {name_of(pod) for pod in in_phase(items, "Succeeded")})
    samples = await stage.product.released()
    rows = await stage.product.query_until(SHARES, lambda rows: {row[0] for row in rows} == {*expected})

    assert {(row[0], row[1], row[2]) for row in rows} == {(name, GPU, share) for name, share in expected.items()}
    true = {name: share * lasted(name, ended) for name, share in expected.items()}
    assert {name: sum(r[2] * (r[4] - r[3]) for r in rows if r[0] == name) for name in expected} == true
    assert differences(samples) == {0}


def lasted(name: str, ended: Items) -> int:
    """Seconds from binding to end, by the API's times."""
    [pod] = [each for each in ended if name_of(each) == name]
    bound = seconds(condition(pod, "PodScheduled")["lastTransitionTime"])
    return round(seconds(container_state(pod, "terminated")["finishedAt"]) - bound)


def name_of(pod: Json) -> str:
    name: str = pod["metadata"]["name"]
    return name
