"""The record of a job that a real Kueue preempts: against the truth, and once, whenever the aggregator is killed."""

import asyncio
from pathlib import Path

import pytest

from tests.behaviour.product import PRICE, Product
from tests.behaviour.recorder import Recorder
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import Json, conduct
from tests.cluster.objects import Items, condition, container_state, seconds
from tests.e2e.queue_system import API, CLASS, kueue, workload_class
from tests.e2e.test_kueue import furnish, is_running, of_queue, owner_of, path, record_of
from tests.e2e.watching import watching
from tests.fakes.webhook import Endpoint, Receiver

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets of killed servers
]

GPUS, PODS = 2, 2
PRIORITY = 5000
"""Of the preemptor in its queue, whatever the priority of its pods."""
DELIVERED_WITHIN = 120


async def test_a_preempted_job_has_one_true_record_that_is_delivered_once(
    api: Api, control_plane: ControlPlane, place: str, tmp_path: Path
) -> None:
    receiver = Receiver()
    endpoint = Endpoint(receiver, tmp_path / "webhook-url")
    await endpoint.start()
    async with (
        watching(
            *(api, control_plane, place, tmp_path),
            values=("kueueWorkloads",),
            environment={
                "GPUTALLY_WATCH": "workloads.kueue.x-k8s.io",
                "GPUTALLY_PREEMPTION_WEBHOOK_URL_FILE": str(endpoint.path),
            },
        ) as product,
        kueue(control_plane, api, tmp_path),
        Recorder(api, fieldSelector=f"metadata.namespace={place}") as recorder,
    ):
        await furnish(api, place)
        await product.start()
        victims = await preempted(api, place, product)
        await delivered(api, place, receiver)
        await product.query_until(
            "SELECT result FROM preemption_deliveries WHERE result NOTNULL", lambda rows: len(rows) == 1
        )
        await again(product)
        record = await record_of(product, place)
        workloads = {owner_of(each): each for each in (await api.get(collection(place)))["items"]}
    await endpoint.stop()
    forms = {uid: [pod for _, pod, _ in recorder.forms[uid]] for uid in victims}
    expect_true(record, forms, workloads, place)
    assert receiver.attempts == [record["id"]]
    [document] = receiver.accepted
    hidden = {"preemptors", "rules", "advice", "decided", "requested", "released"}  # of other tenants; times are in UTC
    assert {name: document[name] for name in record.keys() - hidden} == {
        name: record[name] for name in record.keys() - hidden
    }
    assert (document["preemptors"], document["is_final"], document["replaced"]) == (None, True, None)


async def preempted(api: Api, place: str, product: Product) -> list[str]:
    """The UIDs of the pods of a job that Kueue preempts; the aggregator is killed at each step."""
    pods = f"/api/v1/namespaces/{place}/pods"
    await api.create(of_queue(place, "low", gpus=GPUS, pods=PODS))
    await api.wait_for(path(place, "low"), lambda found: bool(found) and (found or {})["status"].get("ready") == PODS)
    victims = (await api.list(pods))["items"]
    for pod, after in zip(victims, ("1s", "6s"), strict=True):
        await api.patch(f"{pods}/{pod['metadata']['name']}", {"metadata": {"annotations": conduct(stop_after=after)}})
    await asyncio.sleep(3)  # times have whole seconds, and the pods have to lose more than that
    await api.create(workload_class(f"{place}-urgent", PRIORITY))
    high = of_queue(place, "high", gpus=GPUS * PODS)
    high["metadata"]["labels"][CLASS] = f"{place}-urgent"
    await api.create(high)
    await api.wait_for_items(collection(place), is_evicted)
    await again(product)
    await api.wait_for_items(pods, lambda items: victims[0]["metadata"]["uid"] not in uids(items))
    await again(product)
    await api.wait_for(path(place, "high"), is_running, within=60)
    return sorted(uids(victims))


async def delivered(api: Api, place: str, receiver: Receiver) -> None:
    """Until a record was delivered; bookmarks of the watch of pods come once a minute, changes of pods at once."""
    [pod] = (await api.list(f"/api/v1/namespaces/{place}/pods"))["items"]
    async with asyncio.timeout(DELIVERED_WITHIN):
        while not receiver.accepted:
            note = {"metadata": {"annotations": {"noted": str(asyncio.get_running_loop().time())}}}
            await api.patch(f"/api/v1/namespaces/{place}/pods/{pod['metadata']['name']}", note)
            await asyncio.sleep(1)


async def again(product: Product) -> None:
    await product.kill()
    await product.start()


def collection(place: str) -> str:
    return f"/apis/{API}/namespaces/{place}/workloads"


def is_evicted(items: Items) -> bool:
    return any("status" in each and condition(each, "Evicted").get("status") == "True" for each in items)


def uids(items: Items) -> set[str]:
    return {each["metadata"]["uid"] for each in items}


def expect_true(record: Json, forms: dict[str, list[Json]], workloads: dict[str, Json], place: str) -> None:
    """By the pods and Workloads that the API server had."""
    low, high = workloads["low"], workloads["high"]
    assert record["id"] in forms
    assert sorted(record["pods"]) == sorted(pods[-1]["metadata"]["name"] for pods in forms.values())
    assert (record["job_kind"], record["job"], record["tier"]) == ("Job", "low", f"{place}-low")
    assert (record["preemptors"], record["preemptor_tiers"]) == ([f"{place}/high"], [f"{place}-high"])
    assert seconds(record["decided"]) == seconds(condition(low, "Evicted")["lastTransitionTime"])
    assert high["spec"]["priorityClassRef"]["kind"] == "WorkloadPriorityClass"
    own = low["spec"]["priority"]
    why = f"InClusterQueue (prioritization in the ClusterQueue): priority {PRIORITY} before priority {own}"
    assert (record["rules"], record["is_permitted"]) == ([why], None)
    assert any(f"A priority above {PRIORITY} " in each["text"] for each in record["advice"])
    runs = [
        next(filter(None, (container_state(pod, "terminated") for pod in reversed(pods)))) for pods in forms.values()
    ]
    lost = sum(GPUS * (seconds(each["finishedAt"]) - seconds(each["startedAt"])) for each in runs) / 3600
    assert record["lost_gpu_hours"] == pytest.approx(lost, abs=1e-6)
    assert record["lost_costs"] == {"USD": pytest.approx(lost * float(PRICE), abs=1e-6)}
    assert seconds(record["released"]) == max(seconds(each["finishedAt"]) for each in runs)
    assert (record["lost_pods"], record["is_final"], record["replaced"]) == (PODS, True, None)
