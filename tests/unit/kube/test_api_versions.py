"""A resource that servers have in different versions of its API."""

import msgspec

from gputally.kube.watched import Resource
from gputally.model.observation import RelistFinished, Unavailable, Upserted
from tests.fakes.objects import listing, pod
from tests.fakes.scripted_api import ScriptedApi
from tests.unit.kube.conftest import PODS, Watcher

VERSIONED: Resource = msgspec.structs.replace(
    PODS, path="/apis/g/v2/pods", older=("/apis/g/v1/pods",), without="nobody knows"
)


async def test_the_version_that_the_server_has_is_listed_and_watched(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(VERSIONED)
    newest = await server.request()
    newest.refuse(404)
    older = await server.request()
    older.answer(listing(pod("a"), version=9))
    watch = await server.request()

    assert [newest.path, older.path, watch.path] == ["/apis/g/v2/pods", "/apis/g/v1/pods", "/apis/g/v1/pods"]
    assert watch.query["resourceVersion"] == "9"
    assert [type(each) for each in (await watcher.take(3))[1:]] == [Upserted, RelistFinished]
    assert watcher.pauses == []
    assert watcher.health.available


async def test_only_a_server_without_any_version_lacks_the_resource(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(VERSIONED)
    for _ in range(2):
        (await server.request()).refuse(404)

    assert isinstance(await watcher.next(), Unavailable)
    assert watcher.health.available is False
    again = await server.request()
    assert again.path == "/apis/g/v2/pods"
    assert len(watcher.pauses) == 1
    again.answer(listing(pod("a"), version=9))
    await watcher.take(3)
    assert watcher.health.available


async def test_an_upgraded_server_is_listed_again_in_its_new_version(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(VERSIONED)
    (await server.request()).refuse(404)
    (await server.request()).answer(listing(pod("a"), version=9))
    (await server.request()).refuse(404)

    upgraded = await server.request()
    assert upgraded.path == "/apis/g/v2/pods"
    assert "resourceVersion" not in upgraded.query
    upgraded.answer(listing(pod("a"), version=12))
    await watcher.take(6)
    assert watcher.health.available


async def test_a_forbidden_version_is_not_exchanged_for_another_one(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(VERSIONED)
    for _ in range(2):
        request = await server.request()
        assert request.path == "/apis/g/v2/pods"
        request.refuse(403)

    assert watcher.health.available is False
