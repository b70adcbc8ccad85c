"""Owners: fetched by their metadata alone, once each."""

import asyncio

import pytest

from gputally.errors import ApiUnreachable
from gputally.model.kube import OwnerReference
from gputally.model.observation import OwnerSeen
from gputally.sources.api import Api
from gputally.sources.owners import Owners, fetch_owner, path_of
from tests.fakes.scripted_api import PATIENCE_SECONDS, ScriptedApi
from tests.unit.sources.conftest import Clock


def reference(name: str = "train", kind: str = "Job", api_version: str = "batch/v1") -> OwnerReference:
    """A reference whose uid is derived from the name."""
    return OwnerReference(kind=kind, name=name, uid=f"uid-{name}", api_version=api_version, controller=True)


def owned(name: str = "train") -> dict[str, object]:
    """The owner itself, controlled by a JobSet."""
    owners = [
        {"kind": "Queue", "name": "q", "uid": "uid-q"},
        {
            "kind": "JobSet",
            "name": "set",
            "uid": "uid-set",
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "controller": True,
        },
    ]
    return {"kind": "PartialObjectMetadata", "metadata": {"uid": f"uid-{name}", "ownerReferences": owners}}


def ask(owners: Owners, name: str = "train") -> asyncio.Task[OwnerSeen]:
    """The question in the background, so that the test can answer it."""
    return asyncio.create_task(asyncio.wait_for(owners.owner(reference(name), namespace="ml"), PATIENCE_SECONDS))


@pytest.mark.parametrize(
    ("kind", "api_version", "path"),
    [
        ("ReplicaSet", "apps/v1", "/apis/apps/v1/namespaces/ml/replicasets/x"),
        ("Deployment", "apps/v1", "/apis/apps/v1/namespaces/ml/deployments/x"),
        ("CronJob", "batch/v1", "/apis/batch/v1/namespaces/ml/cronjobs/x"),
        ("JobSet", "jobset.x-k8s.io/v1alpha2", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/ml/jobsets/x"),
        ("PyTorchJob", "kubeflow.org/v1", "/apis/kubeflow.org/v1/namespaces/ml/pytorchjobs/x"),
        ("RayCluster", "ray.io/v1", "/apis/ray.io/v1/namespaces/ml/rayclusters/x"),
        ("LeaderWorkerSet", "lws.example/v1", "/apis/lws.example/v1/namespaces/ml/leaderworkersets/x"),
        ("Workflow", "argoproj.io/v1alpha1", "/apis/argoproj.io/v1alpha1/namespaces/ml/workflows/x"),
        ("Policy", "example.com/v1", "/apis/example.com/v1/namespaces/ml/policies/x"),
        ("Ingress", "networking.k8s.io/v1", "/apis/networking.k8s.io/v1/namespaces/ml/ingresses/x"),
        ("ReplicationController", "v1", "/api/v1/namespaces/ml/replicationcontrollers/x"),
        ("Node", "v1", "/api/v1/nodes/x"),
    ],
)  # fmt: skip
def test_an_owner_is_looked_for_where_its_kind_is_served(kind: str, api_version: str, path: str) -> None:
    assert path_of(reference("x", kind, api_version), "ml") == path


async def test_an_owner_is_seen_with_its_controller_from_its_metadata_alone(
    server: ScriptedApi, api: Api, clock: Clock
) -> None:
    fetched = asyncio.create_task(fetch_owner(api, reference(), namespace="ml", clock=clock))
    request = await server.request()
    request.answer(owned())

    assert request.headers["Accept"].startswith("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
    assert await fetched == OwnerSeen(
        uid="uid-train",
        kind="Job",
        name="train",
        parent_uid="uid-set",
        parent_kind="JobSet",
        parent_name="set",
        parent_api_version="jobset.x-k8s.io/v1alpha2",
        at_us=clock.now,
    )


@pytest.mark.parametrize("status", [403, 404])
async def test_an_owner_that_is_gone_or_hidden_has_no_parent(
    server: ScriptedApi, api: Api, clock: Clock, status: int
) -> None:
    fetched = asyncio.create_task(fetch_owner(api, reference(), namespace="ml", clock=clock))
    (await server.request()).refuse(status)

    assert (await fetched).parent_uid is None


async def test_a_successor_of_the_same_name_is_not_the_owner(server: ScriptedApi, api: Api, clock: Clock) -> None:
    fetched = asyncio.create_task(fetch_owner(api, reference(), namespace="ml", clock=clock))
    (await server.request()).answer(owned("another"))

    assert (await fetched).parent_uid is None


async def test_a_missing_permission_is_said_once_a_kind(
    server: ScriptedApi, api: Api, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    owners = Owners(api, clock=clock)
    for name in ("a", "b"):
        asked = ask(owners, name)
        (await server.request()).refuse(403)
        await asked

    (record,) = caplog.records
    assert "grant get on jobs in API group 'batch'" in record.getMessage()


async def test_an_owner_is_asked_for_once_however_many_pods_it_has(server: ScriptedApi, api: Api, clock: Clock) -> None:
    owners = Owners(api, clock=clock)
    asked = [ask(owners) for _ in range(5)]
    (await server.request()).answer(owned())
    await asyncio.gather(*asked)
    await owners.owner(reference(), namespace="ml")

    assert server.is_left_alone


async def test_an_error_reaches_all_who_wait_and_the_next_question_is_asked_anew(
    server: ScriptedApi, api: Api, clock: Clock
) -> None:
    owners = Owners(api, clock=clock)
    asked = [ask(owners) for _ in range(3)]
    (await server.request()).refuse(503)
    results = await asyncio.gather(*asked, return_exceptions=True)
    later = ask(owners)
    (await server.request()).answer(owned())

    assert all(isinstance(result, ApiUnreachable) for result in results)
    assert (await later).parent_uid == "uid-set"


async def test_when_the_one_who_asked_is_cancelled_another_asks_in_its_place(
    server: ScriptedApi, api: Api, clock: Clock
) -> None:
    owners = Owners(api, clock=clock)
    first, second = ask(owners), ask(owners)
    await server.request()
    first.cancel()
    (await server.request()).answer(owned())

    assert (await second).parent_uid == "uid-set"


async def test_no_more_requests_run_at_once_than_allowed(server: ScriptedApi, api: Api, clock: Clock) -> None:
    owners = Owners(api, clock=clock, concurrency=2)
    asked = [ask(owners, name) for name in "abc"]
    first, _ = await server.request(), await server.request()
    was_left_alone = server.is_left_alone
    first.refuse(404)
    await server.request()

    assert was_left_alone
    for task in asked:
        task.cancel()


async def test_the_owner_asked_for_longest_ago_is_forgotten_first(server: ScriptedApi, api: Api, clock: Clock) -> None:
    owners = Owners(api, clock=clock, size=2)
    for name in ("a", "b"):
        asked = ask(owners, name)
        (await server.request()).answer(owned(name))
        await asked
    await owners.owner(reference("a"), namespace="ml")
    for name in ("c", "b"):
        asked = ask(owners, name)
        (await server.request()).answer(owned(name))
        await asked

    assert server.is_left_alone
