"""Owners: looked up by their metadata alone, where the server serves their kind and nowhere else."""

import asyncio
import logging

import pytest
from msgspec.structs import replace

from gputally.errors import ApiUnreachable
from gputally.kube.api import Api
from gputally.kube.discovery import LIFETIME_SECONDS, Served
from gputally.kube.failures import LoginRefused
from gputally.kube.owners import FORBIDDEN_SECONDS, MOST_BYTES, OwnerAnswer, Owners, path_of
from gputally.model.kube.meta import Lookup, Owner, OwnerReference
from gputally.model.observation import OwnerResolved
from tests.fakes.discovery import beyond_discovery
from tests.fakes.scripted_api import PATIENCE_SECONDS, ScriptedApi
from tests.unit.kube.conftest import Clock, Seconds

JOB_SET = OwnerReference(
    kind="JobSet", name="set", uid="uid-set", api_version="jobset.x-k8s.io/v1alpha2", controller=True
)


def owner(name: str = "train", *, kind: str = "Job", api_version: str = "batch/v1", namespace: str = "ml") -> Owner:
    """An owner whose uid is derived from the name."""
    reference = OwnerReference(kind=kind, name=name, uid=f"uid-{name}", api_version=api_version, controller=True)
    return Owner(namespace, reference)


def owned(name: str = "train", **more: object) -> dict[str, object]:
    """The owner itself, controlled by a JobSet."""
    owners = [
        {"apiVersion": "v1", "kind": "Queue", "name": "q", "uid": "uid-q"},
        {
            "kind": "JobSet",
            "name": "set",
            "uid": "uid-set",
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "controller": True,
        },
    ]
    return {"kind": "PartialObjectMetadata", "metadata": {"uid": f"uid-{name}", "ownerReferences": owners} | more}


@pytest.fixture
def owners(api: Api, clock: Clock, seconds: Seconds) -> Owners:
    return Owners(api, clock=clock, now=seconds)


def ask(owners: Owners, asked: Owner | None = None) -> asyncio.Task[OwnerAnswer]:
    """The question in the background, so that the test can answer it."""
    return asyncio.create_task(asyncio.wait_for(owners.look_up(asked or owner()), PATIENCE_SECONDS))


@pytest.mark.parametrize(
    ("asked", "target"),
    [
        (owner(), "/apis/batch/v1/namespaces/ml/jobs/train"),
        (owner(kind="Buch", api_version="ml.example/v1"), "/apis/ml.example/v1/namespaces/ml/buecher/train"),
        (owner(kind="Pod", api_version="v1"), "/api/v1/namespaces/ml/pods/train"),
        (owner("n1", kind="Node", api_version="v1"), "/api/v1/nodes/n1"),
        (owner("system:node é"), "/apis/batch/v1/namespaces/ml/jobs/system%3Anode%20%C3%A9"),
        (owner("?watch=true#"), "/apis/batch/v1/namespaces/ml/jobs/%3Fwatch%3Dtrue%23"),
        (owner("...\\..;x=y&z"), "/apis/batch/v1/namespaces/ml/jobs/...%5C..%3Bx%3Dy%26z"),
    ],
)
async def test_an_owner_is_looked_for_where_its_kind_is_served(
    server: ScriptedApi, owners: Owners, asked: Owner, target: str
) -> None:
    answer = ask(owners, asked)
    request = await beyond_discovery(server)
    request.refuse(404)

    assert request.target == target
    assert (await answer).result is Lookup.GONE


async def test_an_owner_is_seen_with_its_controller_from_its_metadata_alone(
    server: ScriptedApi, owners: Owners, clock: Clock
) -> None:
    asked = ask(owners)
    request = await beyond_discovery(server)
    request.answer(owned())

    assert request.headers["Accept"].startswith("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
    assert await asked == OwnerAnswer(Lookup.FOUND, OwnerResolved(owner=owner(), parent=JOB_SET, at_us=clock.now))


@pytest.mark.parametrize(
    ("status", "result"), [(404, Lookup.GONE), (400, Lookup.REFUSED), (405, Lookup.REFUSED), (410, Lookup.REFUSED)]
)
async def test_an_owner_that_is_gone_or_cannot_be_got_has_no_parent(
    server: ScriptedApi, owners: Owners, status: int, result: Lookup
) -> None:
    asked = ask(owners)
    (await beyond_discovery(server)).refuse(status)

    answer = await asked
    assert answer.result is result
    assert answer.seen
    assert answer.seen.parent is None


async def test_a_successor_of_the_same_name_is_not_the_owner(server: ScriptedApi, owners: Owners) -> None:
    asked = ask(owners)
    (await beyond_discovery(server)).answer(owned("another"))

    answer = await asked
    assert answer.result is Lookup.GONE
    assert answer.seen
    assert answer.seen.parent is None


@pytest.mark.parametrize(
    "forged",
    [
        {"name": ".."},
        {"name": "."},
        {"name": ""},
        {"name": "../../../kube-system/configmaps/secret"},
        {"name": "..%2F..%2Fkube-system"},
        {"name": "x" * 254},
        {"name": "a\r\nHost: elsewhere"},
        {"kind": "../../pods#"},
        {"kind": "pods?watch=true#"},
        {"kind": ""},
        {"api_version": "v1?x=#"},
        {"api_version": "../v1"},
        {"api_version": ""},
        {"api_version": f"{'a.' * 130}b/v1"},
        {"uid": ""},
        {"uid": "u" * 129},
    ],
)
async def test_what_cannot_exist_is_not_asked_for_and_not_followed(
    server: ScriptedApi, owners: Owners, forged: dict[str, str]
) -> None:
    reference = replace(owner().reference, **forged)
    refused = await owners.look_up(Owner("ml", reference))
    with pytest.raises(ValueError, match="cannot exist"):
        path_of(Served("batch/v1", "jobs", namespaced=True), Owner("ml", reference))

    assert refused.result is Lookup.REFUSED
    assert server.is_left_alone
    asked = ask(owners)
    wire = {"apiVersion": reference.api_version} | {each: getattr(reference, each) for each in ("kind", "name", "uid")}
    (await beyond_discovery(server)).answer(owned(ownerReferences=[wire | {"controller": True}]))
    answer = await asked
    assert answer.seen
    assert answer.seen.parent is None


async def test_a_kind_that_discovery_does_not_have_is_asked_for_again_after_a_while(
    server: ScriptedApi, owners: Owners
) -> None:
    asked = ask(owners, owner(kind="Invented"))
    answered = asyncio.create_task(beyond_discovery(server))

    assert await asked == OwnerAnswer(Lookup.UNKNOWN_KIND, pause_s=LIFETIME_SECONDS)
    answered.cancel()


async def test_a_missing_permission_is_said_once_and_asked_about_again_after_ten_minutes(
    server: ScriptedApi, owners: Owners, seconds: Seconds, caplog: pytest.LogCaptureFixture
) -> None:
    asked = ask(owners)
    (await beyond_discovery(server)).refuse(403)
    assert await asked == OwnerAnswer(Lookup.FORBIDDEN, pause_s=FORBIDDEN_SECONDS)

    seconds.now += 240
    elsewhere = owner("other", namespace="elsewhere")
    assert await owners.look_up(elsewhere) == OwnerAnswer(Lookup.FORBIDDEN, pause_s=FORBIDDEN_SECONDS - 240)
    assert server.is_left_alone
    asked = ask(owners, owner(kind="CronJob"))
    (await beyond_discovery(server)).refuse(404)
    assert (await asked).result is Lookup.GONE, "another kind of the group may be read"

    seconds.now += 360
    for _ in range(2):
        asked = ask(owners)
        (await beyond_discovery(server)).refuse(403)
        assert (await asked).result is Lookup.FORBIDDEN
        seconds.now += FORBIDDEN_SECONDS
    asked = ask(owners)
    (await beyond_discovery(server)).answer(owned())
    assert (await asked).result is Lookup.FOUND
    [record] = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "those of kind Job stay unknown: grant get on jobs in API group 'batch'" in record.getMessage()


async def test_without_the_right_to_discover_all_stay_unknown_for_ten_minutes(
    server: ScriptedApi, owners: Owners, seconds: Seconds, caplog: pytest.LogCaptureFixture
) -> None:
    asked = ask(owners)
    (await server.request()).refuse(403)
    assert await asked == OwnerAnswer(Lookup.FORBIDDEN, pause_s=FORBIDDEN_SECONDS)
    assert (await owners.look_up(owner("other"))).result is Lookup.FORBIDDEN
    assert server.is_left_alone

    seconds.now += FORBIDDEN_SECONDS
    asked = ask(owners)
    (await beyond_discovery(server)).answer(owned())
    assert (await asked).result is Lookup.FOUND
    [record] = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "grant get on the non-resource URL '/apis'" in record.getMessage()


async def test_an_owner_that_is_too_large_is_not_read(server: ScriptedApi, owners: Owners) -> None:
    asked = ask(owners)
    (await beyond_discovery(server)).answer(owned(labels={"padding": "x" * MOST_BYTES}))

    answer = await asked
    assert answer.result is Lookup.OVERSIZED
    assert answer.seen
    assert answer.seen.parent is None


@pytest.mark.parametrize(("status", "error"), [(503, ApiUnreachable), (429, ApiUnreachable), (401, LoginRefused)])
async def test_what_passes_is_an_error(
    server: ScriptedApi, owners: Owners, status: int, error: type[Exception]
) -> None:
    asked = ask(owners)
    (await beyond_discovery(server)).refuse(status)
    if status == 401:
        (await server.request()).refuse(status)

    with pytest.raises(error):
        await asked


async def test_an_answer_that_is_sent_a_byte_at_a_time_has_a_deadline(
    server: ScriptedApi, owners: Owners, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gputally.kube.owners.DEADLINE_SECONDS", 0.3)
    asked = ask(owners)
    request = await beyond_discovery(server)
    while not asked.done():
        await request.send(b" ")
        await asyncio.sleep(0.02)

    with pytest.raises(ApiUnreachable, match=r"no complete response within 0\.3 s"):
        await asked
