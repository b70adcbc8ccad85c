import asyncio
import json

import aiohttp
import pytest

from gputally_sim.scenarios.workloads import namespace
from tests.unit.sim.kube import PODS, Lines, serving
from tests.unit.sim.test_watching import STREAMING
from tests.unit.sim.world import add, key, pod

NAMESPACES = "/api/v1/namespaces"


async def test_dropped_watches_break_in_the_middle() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, pod("a"))
        async with kube.watch(PODS) as lines:
            await lines.take(1)

            cluster.faults.drop_watches()

            with pytest.raises(aiohttp.ClientError):
                await lines.raw()
        assert (await kube.get(PODS))["items"], "only watches are dropped"


async def test_only_watches_of_the_resource_named_are_dropped() -> None:
    async with (
        serving(nodes=0) as (cluster, kube),
        kube.watch("/api/v1/nodes", resourceVersion="1") as nodes,
        kube.watch(PODS) as pods,
    ):
        cluster.faults.drop_watches("nodes")
        with pytest.raises(aiohttp.ClientError):
            await nodes.raw()

        add(cluster.simulation, pod("a"))
        assert await pods.take(1) == [("ADDED", "a")]


@pytest.mark.parametrize(("code", "reason"), [(429, "TooManyRequests"), (500, "InternalError"), (503, "InternalError")])
async def test_as_many_requests_are_refused_as_were_ordered(code: int, reason: str) -> None:
    async with serving() as (cluster, kube):
        cluster.faults.refuse(2, code)

        answers = [await kube.call("GET", "/api/v1/nodes") for _ in range(3)]

        assert [status for status, _ in answers] == [code, code, 200]
        assert answers[0][1]["reason"] == reason


async def test_too_many_requests_come_with_a_time_to_retry() -> None:
    async with serving() as (cluster, kube):
        cluster.faults.refuse(1)

        async with kube._session.get("/api/v1/nodes") as response:
            assert response.headers["Retry-After"] == "1"


async def test_a_forbidden_resource_is_refused_in_the_words_of_rbac() -> None:
    async with serving() as (cluster, kube):
        cluster.faults.forbidden.add("jobs")

        status, answer = await kube.call("GET", "/apis/batch/v1/jobs")

        assert (status, answer["reason"]) == (403, "Forbidden")
        assert answer["message"].endswith('cannot list resource "jobs" in API group "batch" at the cluster scope')
        assert (await kube.call("GET", "/apis/batch/v1/cronjobs"))[0] == 200


async def test_a_server_without_streaming_lists_refuses_them_as_invalid() -> None:
    async with serving() as (cluster, kube):
        cluster.faults.streaming_lists = False

        status, answer = await kube.call("GET", PODS, params={"watch": "true", **STREAMING})

        assert (status, answer["reason"]) == (422, "Invalid")
        assert (
            "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled" in answer["message"]
        )


async def test_a_stalled_watch_stays_open_and_catches_up_afterwards() -> None:
    async with serving(nodes=0, bookmark_s=0.01) as (cluster, kube):
        add(cluster.simulation, pod("a"))
        async with kube.watch(PODS, **STREAMING) as lines:
            await lines.take(2)
            cluster.faults.stall()
            add(cluster.simulation, pod("b"))
            reading = asyncio.create_task(read_until_added(lines))
            await kube.get(PODS)  # other requests are served while the watch is silent
            assert not reading.done()

            cluster.faults.resume()

            assert await reading == "b"


async def read_until_added(lines: Lines) -> str:
    """The name of the next object added; bookmarks written before the stall may come first."""
    while True:
        line = await lines.next()
        if line["type"] == "ADDED":
            name: str = line["object"]["metadata"]["name"]
            return name


async def test_a_garbled_line_is_no_json_and_the_stream_goes_on() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, pod("a"))
        async with kube.watch(PODS) as lines:
            await lines.take(1)

            cluster.faults.garble()
            with pytest.raises(json.JSONDecodeError):
                await lines.next()

            add(cluster.simulation, pod("b"))
            assert await lines.take(1) == [("ADDED", "b")]


async def test_a_mistyped_object_is_json_of_another_shape() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, pod("a"))
        async with kube.watch(PODS) as lines:
            await lines.take(1)

            cluster.faults.mistype("pods")
            strange = await lines.next()

            assert strange["type"] == "MODIFIED"
            assert isinstance(strange["object"]["spec"], str)
            assert isinstance(strange["object"]["status"], list)


async def test_changes_can_come_twice() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, pod("a"))
        async with kube.watch(PODS) as lines:
            await lines.take(1)
            cluster.faults.repeat(1)

            add(cluster.simulation, pod("b"), pod("c"))

            assert await lines.take(3) == [("ADDED", "b"), ("ADDED", "b"), ("ADDED", "c")]


async def test_changes_can_come_in_reverse() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, pod("a"))
        async with kube.watch(PODS) as lines:
            await lines.take(1)
            cluster.faults.reorder(3)

            add(cluster.simulation, pod("b"), pod("c"), pod("d"), pod("e"))

            told = [name for _, name in await lines.take(4)]
            assert told == ["d", "c", "b", "e"]


async def test_no_bookmark_overtakes_a_change_held_back() -> None:
    async with serving(nodes=0, bookmark_s=0.01) as (cluster, kube):
        version = str(cluster.store.version)
        query = {"resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": "0.2"}
        async with kube.watch(NAMESPACES, **query) as lines:
            cluster.faults.reorder(3)
            cluster.registry.create("namespaces", namespace("b"))
            cluster.registry.create("namespaces", namespace("c"))

            told = [await lines.next() for _ in range(3)]

            assert [line["type"] for line in told] == ["ADDED", "ADDED", "BOOKMARK"]
            assert [line["object"]["metadata"].get("name") for line in told[:2]] == ["c", "b"]


async def test_a_trickle_carries_every_byte_in_many_pieces() -> None:
    async with serving(nodes=0) as (cluster, kube):
        query = {"watch": "true", "resourceVersion": str(cluster.store.version)}
        async with kube._session.get(NAMESPACES, params=query) as response:
            cluster.faults.trickle(1)

            cluster.registry.create("namespaces", namespace("b"))
            pieces = [await response.content.readany()]
            while not pieces[-1].endswith(b"\n"):
                pieces.append(await response.content.readany())

            assert json.loads(b"".join(pieces))["object"] == await kube.get(f"{NAMESPACES}/b")
            assert len(pieces) > 3


async def test_a_watch_can_break_in_the_middle_of_a_line() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, pod("a"))
        async with kube._session.get(PODS, params={"watch": "true"}) as response:
            await response.content.readline()
            cluster.faults.cut("pods")

            add(cluster.simulation, pod("b"))
            half = await response.content.readany()

            assert half.startswith(b'{"type":"ADDED"')
            assert not half.endswith(b"\n")
            with pytest.raises(aiohttp.ClientError):
                await response.content.readany()


async def test_refusals_can_be_called_off() -> None:
    async with serving() as (cluster, kube):
        cluster.faults.refuse(5)
        cluster.faults.stop_refusing()

        assert (await kube.call("GET", "/api/v1/nodes"))[0] == 200


async def test_frozen_bookmarks_do_not_come() -> None:
    async with serving(nodes=0, bookmark_s=0.01) as (cluster, kube):
        cluster.faults.frozen_bookmarks = True
        query = {"resourceVersion": "1", "allowWatchBookmarks": "true", "timeoutSeconds": "1"}

        async with kube.watch(PODS, **query) as lines:
            assert await lines.raw() == b""


async def test_history_can_be_made_to_expire_under_an_open_cluster() -> None:
    async with serving(nodes=0, window=2) as (cluster, kube):
        version = str(cluster.store.version)
        add(cluster.simulation, pod("a"), pod("b"), pod("c"))
        cluster.registry.delete("pods", key("a"))

        async with kube.watch(PODS, resourceVersion=version) as lines:
            assert (await lines.next())["object"]["code"] == 410
