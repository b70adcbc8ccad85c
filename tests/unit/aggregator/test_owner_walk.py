"""Owners are looked up once, a fixed number at a time; what fails is tried again, but not for ever."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from gputally.accounting.changes import new_accounts
from gputally.accounting.fleet.fleet import Fleet
from gputally.aggregator import owner_lookup
from gputally.aggregator.owner_lookup import MAX_FAILURES, MAX_LOOKUPS, MAX_PER_NAMESPACE, OwnerWalk
from gputally.aggregator.pipeline import Pipeline, assemble
from gputally.kube.api import Api
from gputally.kube.connection import Choice, connect
from gputally.kube.failures import Failure, RequestFailed
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Lookup
from gputally.model.observation import Deleted, Upserted
from gputally.model.rules import Rules
from tests.core.manifests import PodForm, as_pod, us
from tests.fakes.discovery import beyond_discovery
from tests.fakes.kubeconfigs import kubeconfig
from tests.fakes.scripted_api import ScriptedApi, serving
from tests.fakes.until import until

OWNER = {"kind": "Buch", "name": "train", "uid": "uid-w", "apiVersion": "ml.example/v1", "controller": True}
FOUND = {"metadata": {"name": "train", "uid": "uid-w"}}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedApi]:
    async with serving() as scripted:
        yield scripted


@pytest.fixture
async def api(server: ScriptedApi, tmp_path: Path) -> AsyncIterator[Api]:
    async with connect(Choice(kubeconfig=kubeconfig(tmp_path, server.url, {"token": "any"}))) as api:
        yield api


@pytest.fixture
async def books(tmp_path: Path) -> AsyncIterator[Pipeline]:
    with SqliteLedger(tmp_path / "ledger.db") as ledger:
        books = assemble(Fleet(rules=Rules(), book=None, saved=new_accounts(0)), ledger, clock=lambda: us(9))
        yield books
        books.writer.close()


def see(books: Pipeline, owners: Iterable[dict[str, object]], *, namespace: str = "ml") -> None:
    """A pod for each of these owners."""
    for owner in owners:
        form = PodForm(
            name=f"{namespace}-{owner['name']}", namespace=namespace, created=1, scheduled=1, node="n1", owners=(owner,)
        )
        books.accountant.take([Upserted(kind=Kind.PODS, object=as_pod(form), at_us=us(2), since_us=us(2))])
    books.fleet.reconcile()


def many(prefix: str, number: int) -> list[dict[str, object]]:
    return [OWNER | {"name": f"{prefix}-{each}", "uid": f"uid-{prefix}-{each}"} for each in range(number)]


@asynccontextmanager
async def running(api: Api, books: Pipeline) -> AsyncIterator[OwnerWalk]:
    """The walk, under way for all that is wanted."""
    walk = OwnerWalk(api, books, clock=lambda: us(9))
    task = asyncio.create_task(walk.run())
    walk.step()
    try:
        yield walk
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def learned(books: Pipeline) -> None:
    """What was looked up next is accounted."""
    books.accountant.take(await books.intake.get())
    books.fleet.reconcile()


def lookups(books: Pipeline) -> dict[Lookup, int]:
    return books.health.owners.lookups


async def test_an_owner_is_asked_for_once_and_names_the_job(api: Api, server: ScriptedApi, books: Pipeline) -> None:
    see(books, [OWNER])
    async with running(api, books) as walk:
        walk.step()
        request = await beyond_discovery(server)
        parent = {"kind": "Team", "name": "red", "uid": "uid-t", "apiVersion": "invented/v1", "controller": True}
        request.answer({"metadata": {"uid": "uid-w", "ownerReferences": [parent]}})
        await learned(books)
        walk.step()
        await until(lambda: lookups(books).get(Lookup.UNKNOWN_KIND))

    assert request.target == "/apis/ml.example/v1/namespaces/ml/buecher/train"
    assert server.is_left_alone
    assert lookups(books) == {Lookup.FOUND: 1, Lookup.UNKNOWN_KIND: 1}
    [record] = books.fleet.pods.records.values()
    assert (record.job_kind, record.job) == ("Team", "red")


async def test_no_more_are_asked_for_at_once_than_there_are_places_and_no_namespace_has_all(
    api: Api, server: ScriptedApi, books: Pipeline
) -> None:
    see(books, many("forged", 200), namespace="hostile")
    async with running(api, books) as walk:
        held = [await beyond_discovery(server) for _ in range(MAX_PER_NAMESPACE)]
        assert {request.target.split("/")[5] for request in held} == {"hostile"}
        await asyncio.sleep(0.05)
        assert server.is_left_alone

        see(books, [OWNER])
        walk.step()
        honest = await beyond_discovery(server)
        assert honest.target == "/apis/ml.example/v1/namespaces/ml/buecher/train"
        honest.answer(FOUND)
        await learned(books)

        see(books, many("more", 200), namespace="worse")
        walk.step()
        held += [await beyond_discovery(server) for _ in range(MAX_LOOKUPS - MAX_PER_NAMESPACE)]
        assert server.is_left_alone
        see(books, [OWNER | {"name": "second", "uid": "uid-2"}])
        walk.step()
        held.pop(0).refuse(404)
        assert "/ml/" in (await next_two(server))
        assert len([task for task in asyncio.all_tasks() if task.get_name().startswith("owner")]) == MAX_LOOKUPS


async def next_two(server: ScriptedApi) -> str:
    """Where the next request goes; the one after that, if the first is of a namespace that had its turn before."""
    first = await beyond_discovery(server)
    if "/ml/" in first.target:
        return first.target
    first.refuse(404)
    return (await beyond_discovery(server)).target


async def test_an_owner_that_always_fails_is_given_up_and_its_job_named_by_what_is_known(
    api: Api, server: ScriptedApi, books: Pipeline, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(owner_lookup, "FIRST_PAUSE_SECONDS", 0.001)
    see(books, [OWNER])
    async with running(api, books):
        for _ in range(MAX_FAILURES):
            (await beyond_discovery(server)).refuse(500)
        await learned(books)
        await asyncio.sleep(0.05)

    assert server.is_left_alone
    assert lookups(books) == {Lookup.FAILED: MAX_FAILURES - 1, Lookup.GIVEN_UP: 1}
    assert books.fleet.pods.walks.wanted == {}
    [record] = books.fleet.pods.records.values()
    assert (record.job_kind, record.job) == ("Buch", "train")
    [said] = [record.getMessage() for record in caplog.records if record.name == owner_lookup.__name__]
    assert said.startswith(f"owners: {server.url}/apis/ml.example/v1/namespaces/ml/buecher/train: 500")


async def test_pauses_grow_and_an_outage_of_the_server_is_no_failure_of_an_owner(api: Api, books: Pipeline) -> None:
    see(books, many("w", 2))
    walk = OwnerWalk(api, books, clock=lambda: us(9))
    first, second = books.fleet.pods.walks.wanted
    answers = [walk._failed(first, RequestFailed("no", Failure.SERVER)) for _ in range(MAX_FAILURES)]
    during = [walk._failed(second, RequestFailed("no", Failure.UNREACHABLE)) for _ in range(20)]

    assert [answer.pause_s for answer in answers[:-1]] == [10, 20, 40, 80, 160]
    assert [answer.result for answer in answers] == [Lookup.FAILED] * (MAX_FAILURES - 1) + [Lookup.GIVEN_UP]
    assert [answer.pause_s for answer in during[:7]] == [10, 20, 40, 80, 160, 300, 300]
    assert {answer.result for answer in during} == {Lookup.FAILED}


async def test_an_owner_that_failed_is_asked_for_again_after_a_pause(
    api: Api, server: ScriptedApi, books: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_lookup, "FIRST_PAUSE_SECONDS", 0.2)
    see(books, [OWNER])
    async with running(api, books) as walk:
        (await beyond_discovery(server)).refuse(503)
        await until(lambda: lookups(books).get(Lookup.FAILED))
        failed = asyncio.get_running_loop().time()
        walk.step()
        (await beyond_discovery(server)).answer(FOUND)
        await learned(books)

    assert asyncio.get_running_loop().time() - failed >= 0.15
    assert lookups(books) == {Lookup.FAILED: 1, Lookup.FOUND: 1}
    assert walk._attempts == {}


async def test_owners_of_pods_that_are_gone_are_not_asked_for_and_not_kept(
    api: Api, server: ScriptedApi, books: Pipeline
) -> None:
    owners = many("forged", 2 * owner_lookup.SPARE)
    see(books, owners)
    walk = OwnerWalk(api, books, clock=lambda: us(9))
    walk.step()
    for record in list(books.fleet.pods.records.values()):
        gone = as_pod(PodForm(name=record.name, uid=record.uid, namespace="ml", version=2, created=1, deleted=3))
        books.accountant.take([Deleted(kind=Kind.PODS, object=gone, at_us=us(4), since_us=us(4))])
    books.fleet.reconcile()
    assert len(walk._queue) == 2 * owner_lookup.SPARE
    walk.step()

    assert len(walk._queue) == 0
    assert books.fleet.pods.walks.wanted == {}
    assert server.is_left_alone
