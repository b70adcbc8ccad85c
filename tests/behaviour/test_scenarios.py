"""S1 and S2 on both clusters: the product reports what the API objects add up to."""

import asyncio

from tests.behaviour.product import PRICE, Samples, total
from tests.behaviour.published import differences, exported, overcount_over, published
from tests.behaviour.stage import Stage
from tests.cluster.manifests import Json, conduct, deployment, gpu_pod, job, pod_disruption_budget, resource_quota

S1_TIERS = {
    "inference-critical": 10_000,
    "inference-standard": 5_000,
    "training-high": 1_000,
    "training-standard": 500,
    "training-low": 100,
}
S1_TEAMS = {"ml-inference": "serving", "ml-training": "research"}
S2_TIERS = {"gpu-training": 1_000, "gpu-serving": 800, "gpu-batch": 400}
S2_TEAMS = {"tenant-alpha": "alpha", "tenant-beta": "beta"}


async def test_s1_adds_up_to_what_the_api_objects_say(stage: Stage) -> None:
    await stage.furnish(nodes=8, gpus=1, tiers=S1_TIERS, teams=S1_TEAMS)
    await stage.product.start()

    await day_and_night(stage)

    samples = await stage.product.released()
    await stage.recorder.complete()
    truth = stage.recorder.bill(teams=S1_TEAMS, per_gpu_hour=PRICE)
    assert stage.product.bill() == truth
    assert published(samples) == exported(truth)
    assert differences(samples) == {0}
    assert await preemptors(stage) == await expected_preemptors(stage)
    assert preemptions_by_tier(samples) == {
        ("training-low", "inference-critical"): 4,
        ("training-standard", "inference-critical"): 2,
    }


async def test_s2_adds_up_to_what_the_api_objects_say(stage: Stage) -> None:
    await stage.furnish(nodes=3, gpus=8, tiers=S2_TIERS, teams=S2_TEAMS)
    await stage.create(never("gpu-interactive", 200), resource_quota("gpus", "tenant-alpha", gpus=14))
    await stage.product.start()

    await posture(stage)

    samples = await stage.product.released()
    await stage.recorder.complete()
    truth = stage.recorder.bill(teams=S2_TEAMS, per_gpu_hour=PRICE)
    assert stage.product.bill() == truth
    assert overcount_over(truth, samples) < 3 * 8  # 1 s for each GPU: ends are cut to seconds
    assert differences(samples) == {0}
    assert await preemptors(stage) == await expected_preemptors(stage)
    assert preemptions_by_tier(samples) == {("gpu-interactive", "gpu-training"): 6}


async def day_and_night(stage: Stage) -> None:
    """Training fills the GPUs, inference takes six of them, gives four back, and everything ends."""
    training = conduct(run_for="1h", stop_after="2s")
    await stage.create(pod_disruption_budget("serve", "ml-inference", labels={"app": "serve"}, min_available=2))
    await stage.create(job(pod("standard", "ml-training", "training-standard", training), parallelism=4))
    await stage.create(job(pod("low", "ml-training", "training-low", training), parallelism=4))
    await stage.running(8)
    await stage.create(
        deployment(pod("serve", "ml-inference", "inference-critical", conduct(start_after="1s")), replicas=6)
    )
    await stage.running(6, tier="inference-critical")
    await stage.running(8)
    await stage.api.patch("/apis/apps/v1/namespaces/ml-inference/deployments/serve", {"spec": {"replicas": 2}})
    await stage.running(2, tier="inference-critical")
    await stage.create(job(pod("short", "ml-training", "training-high", conduct(run_for="2s")), parallelism=1))
    await stage.pods(lambda items: any(p["status"]["phase"] == "Succeeded" for p in items))
    await stage.delete_all(
        "/apis/apps/v1/namespaces/ml-inference/deployments/serve",
        *(f"/apis/batch/v1/namespaces/ml-training/jobs/{name}" for name in ("low", "standard", "short")),
    )


async def posture(stage: Stage) -> None:
    """Training preempts the notebooks, which have the lowest tier; interactive waits and preempts no pod."""
    stop = conduct(stop_after="1s")
    for number in range(6):
        await stage.create(placed(pod(f"notebook-{number}", "tenant-beta", "gpu-interactive", stop), "node-0"))
    await stage.create(placed(pod("batch", "tenant-beta", "gpu-batch", stop, gpus=4), "node-1"))
    await stage.create(placed(pod("serve", "tenant-alpha", "gpu-serving", stop, gpus=6), "node-2"))
    await stage.running(8)
    await stage.create(pod("train", "tenant-alpha", "gpu-training", stop, gpus=8))
    await stage.running(1, tier="gpu-training")
    await stage.create(pod("waits", "tenant-beta", "gpu-interactive", stop, gpus=8))
    await waiting(stage, "gpu-interactive", "beta", gpus=8)
    names = [p["metadata"] for p in (await stage.api.list("/api/v1/pods"))["items"]]
    await stage.delete_all(*(f"/api/v1/namespaces/{m['namespace']}/pods/{m['name']}" for m in names))


async def waiting(stage: Stage, tier: str, tenant: str, *, gpus: int) -> None:
    """Wait until the product reports this many pending GPUs."""
    async with asyncio.timeout(10):
        wanted = {"tier": tier, "tenant": tenant}
        while total(await stage.product.scrape(), "gputally_pending_gpus", **wanted) != gpus:  # noqa: ASYNC110 - see `until`
            await asyncio.sleep(0.05)


def pod(name: str, namespace: str, tier: str, annotations: dict[str, str], *, gpus: int = 1) -> Json:
    return gpu_pod(name, namespace, gpus=gpus, annotations=annotations, priorityClassName=tier)


def placed(manifest: Json, node: str) -> Json:
    """The pod, restricted to that node, because schedulers spread pods differently."""
    manifest["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    return manifest


def never(name: str, value: int) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "Never",
    }


def preemptions_by_tier(samples: Samples) -> dict[tuple[str, str], float]:
    found = {}
    for (name, labels), value in samples.items():
        if name == "gputally_preemptions_total" and value:
            by_name = dict(labels)
            found[by_name["victim_tier"], by_name["preemptor_tier"]] = value
    return found


async def preemptors(stage: Stage) -> dict[object, object]:
    """Preemptor by victim, from the ledger."""
    return dict(stage.product.query("SELECT victim_uid, preemptor_uid FROM preemptions"))


async def expected_preemptors(stage: Stage) -> dict[object, object]:
    """Preemptor by recorded victim, from the scheduler's Events."""
    victims = stage.recorder.victims()
    events = (await stage.api.list("/api/v1/events", fieldSelector="reason=Preempted"))["items"]
    by_victim = {event["involvedObject"]["uid"]: preemptor_of(event) for event in events}
    return {uid: by_victim[uid] for uid in victims}


def preemptor_of(event: Json) -> str:
    """From `related`, or from the message, since kube-scheduler 1.36 omits `related`."""
    named: str = event.get("related", {}).get("uid") or event["message"].split()[3]
    return named
