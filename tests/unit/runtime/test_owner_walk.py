"""Owners are asked for once, and what fails is tried again after a pause."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gputally.accounting.changes import new_books
from gputally.accounting.fleet import Fleet
from gputally.ledger.sqlite import SqliteLedger
from gputally.model.kube import Kind
from gputally.model.observation import Seen
from gputally.model.rules import Rules
from gputally.runtime import owner_walk
from gputally.runtime.books import Books
from gputally.runtime.owner_walk import OwnerWalk
from gputally.sources.api import Api
from gputally.sources.connect import Choice, connect
from tests.core.manifests import PodForm, as_pod, us
from tests.fakes.kubeconfigs import kubeconfig
from tests.fakes.scripted_api import ScriptedApi, serving
from tests.fakes.until import until

OWNER = {"kind": "Workflow", "name": "train", "uid": "uid-w", "apiVersion": "argoproj.io/v1alpha1", "controller": True}
POD = as_pod(PodForm(created=1, scheduled=1, node="n1", owners=(OWNER,)))


@pytest.fixture
async def server() -> AsyncIterator[ScriptedApi]:
    async with serving() as scripted:
        yield scripted


@pytest.fixture
async def api(server: ScriptedApi, tmp_path: Path) -> AsyncIterator[Api]:
    async with connect(Choice(kubeconfig=kubeconfig(tmp_path, server.url, {"token": "any"}))) as api:
        yield api


@pytest.fixture
async def books(tmp_path: Path) -> AsyncIterator[Books]:
    with SqliteLedger(tmp_path / "ledger.db") as ledger:
        fleet = Fleet(rules=Rules(), book=None, saved=new_books(0))
        books = Books(fleet, ledger, clock=lambda: us(9), watches=())
        books.take([Seen(kind=Kind.PODS, object=POD, at_us=us(2), since_us=us(2))])
        books.settle()
        yield books
        books.close()


async def test_an_owner_is_asked_for_once_and_names_the_job(api: Api, server: ScriptedApi, books: Books) -> None:
    async with asyncio.TaskGroup() as tasks:
        owners = OwnerWalk(api, books, clock=lambda: us(9), tasks=tasks)
        owners.step()
        owners.step()
        request = await server.request()
        request.answer({"metadata": {"name": "train", "uid": "uid-w"}})
    books.take(await books.backlog.get())
    owners.step()

    assert request.path == "/apis/argoproj.io/v1alpha1/namespaces/ml/workflows/train"
    assert server.is_left_alone
    assert books.fleet.pods.walks.wanted == {}


async def test_an_owner_that_was_not_to_be_had_is_asked_for_again_after_a_pause(
    api: Api, server: ScriptedApi, books: Books, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pauses, over = list[float](), asyncio.Event()

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await over.wait()

    async with asyncio.TaskGroup() as tasks:
        owners = OwnerWalk(api, books, clock=lambda: us(9), tasks=tasks)
        owners.step()
        (await server.request()).refuse(503)
        monkeypatch.setattr(owner_walk, "sleep", pause)
        await until(lambda: pauses)
        owners.step()
        assert server.is_left_alone, "it was asked for again without a pause"
        over.set()
    async with asyncio.TaskGroup() as tasks:
        owners._tasks = tasks
        owners.step()
        (await server.request()).answer({"metadata": {"name": "train", "uid": "uid-w"}})

    assert pauses == [owner_walk.RETRY_SECONDS]
    assert books.backlog.size == 1
    [said] = [record.getMessage() for record in caplog.records if record.name == owner_walk.__name__]
    assert said.startswith(f"owners: {server.url}/apis/argoproj.io/v1alpha1/namespaces/ml/workflows/train: 503")
