import pytest

from gputally_sim.documents import Doc
from tests.unit.sim.kube import PODS, serving
from tests.unit.sim.world import add, key, pod

STREAMING = {
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": "true",
}


def left_alone(name: str) -> Doc:
    """A pod that the scheduler does not look at: it changes only as a test says."""
    found = pod(name)
    found["spec"]["schedulerName"] = "nobody"
    return found


async def test_a_watch_from_a_version_has_all_that_came_after_it() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, left_alone("a"))
        version = str(cluster.store.version)
        add(cluster.simulation, left_alone("b"))

        async with kube.watch(PODS, resourceVersion=version) as lines:
            add(cluster.simulation, left_alone("c"))
            cluster.registry.delete("pods", key("b"))

            told = [line for line in await lines.take(4) if line[0] != "MODIFIED"]
            assert ("ADDED", "a") not in told
            assert [line for line in told if line[0] == "ADDED"] == [("ADDED", "b"), ("ADDED", "c")]


async def test_a_watch_without_a_version_begins_with_what_there_is() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, left_alone("b"), left_alone("a"))

        async with kube.watch(PODS) as lines:
            assert await lines.take(2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_line_carries_the_whole_object_with_its_type() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, left_alone("a"))

        async with kube.watch(PODS) as lines:
            line = await lines.next()

            assert line["object"] == await kube.get(f"{PODS}/a")


async def test_a_streaming_list_ends_with_a_marked_bookmark() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, left_alone("a"))
        version = str(cluster.store.version)

        async with kube.watch(PODS, **STREAMING) as lines:
            assert await lines.take(1) == [("ADDED", "a")]
            bookmark = await lines.next()

            assert bookmark["type"] == "BOOKMARK"
            assert bookmark["object"]["kind"] == "Pod"
            assert bookmark["object"]["metadata"]["resourceVersion"] == version
            assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}

            add(cluster.simulation, left_alone("b"))
            assert await lines.take(1) == [("ADDED", "b")]


@pytest.mark.parametrize(
    "query",
    [
        {"sendInitialEvents": "true"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "NotOlderThan"},
    ],
)
async def test_a_streaming_list_without_the_right_match_is_invalid(query: dict[str, str]) -> None:
    async with serving() as (_, kube):
        status, answer = await kube.call("GET", PODS, params={"watch": "true", **query})

        assert (status, answer["reason"]) == (422, "Invalid")


async def test_a_version_too_old_is_an_error_in_the_stream_which_then_ends() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, left_alone("a"), left_alone("b"))
        cluster.store.compact()

        async with kube.watch(PODS, resourceVersion="3") as lines:
            error = await lines.next()
            assert error["type"] == "ERROR"
            assert (error["object"]["kind"], error["object"]["code"], error["object"]["reason"]) == (
                "Status",
                410,
                "Expired",
            )
            assert await lines.raw() == b""


async def test_bookmarks_come_by_themselves_with_the_latest_version_of_any_resource() -> None:
    async with (
        serving(nodes=0, bookmark_s=0.05) as (cluster, kube),
        kube.watch(PODS, resourceVersion="1", allowWatchBookmarks="true") as lines,
    ):
        cluster.registry.create("namespaces", {"metadata": {"name": "elsewhere"}})

        line = await lines.next()
        while line["object"]["metadata"]["resourceVersion"] != str(cluster.store.version):
            line = await lines.next()
        assert line["type"] == "BOOKMARK"


async def test_without_being_asked_for_there_are_no_bookmarks() -> None:
    async with (
        serving(nodes=0, bookmark_s=0.01) as (_, kube),
        kube.watch(PODS, resourceVersion="1", timeoutSeconds="1") as lines,
    ):
        assert await lines.raw() == b""


async def test_a_watch_ends_after_its_timeout_with_a_last_bookmark() -> None:
    async with (
        serving(nodes=0) as (_, kube),
        kube.watch(PODS, resourceVersion="1", timeoutSeconds="1", allowWatchBookmarks="true") as lines,
    ):
        assert (await lines.next())["type"] == "BOOKMARK"
        assert await lines.raw() == b""


async def test_an_object_enters_and_leaves_the_selection_of_a_watch() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, left_alone("a"), left_alone("b"))
        version = str(cluster.store.version)
        selector = "status.phase!=Succeeded,status.phase!=Failed"

        async with kube.watch(PODS, resourceVersion=version, fieldSelector=selector) as lines:
            failed = cluster.registry.patch("pods", key("a"), {"status": {"phase": "Failed"}}, status=True)
            left = await lines.next()
            cluster.registry.patch("pods", key("a"), {"status": {"phase": "Running"}}, status=True)
            entered = await lines.next()

        assert (left["type"], left["object"]["metadata"]["name"]) == ("DELETED", "a")
        assert left["object"]["status"]["phase"] == "Pending", "the last state that was selected"
        assert left["object"]["metadata"]["resourceVersion"] == failed.doc["metadata"]["resourceVersion"]
        assert (entered["type"], entered["object"]["status"]["phase"]) == ("ADDED", "Running")


async def test_an_object_outside_the_selection_is_not_told_of() -> None:
    async with serving(nodes=0) as (cluster, kube):
        version = str(cluster.store.version)

        async with kube.watch("/api/v1/pods", resourceVersion=version, fieldSelector="metadata.name=b") as lines:
            add(cluster.simulation, left_alone("a"), left_alone("b"))

            assert await lines.take(1) == [("ADDED", "b")]


async def test_events_can_be_watched_by_reason() -> None:
    async with serving(nodes=1, speed=1000) as (cluster, kube):
        query = {"fieldSelector": "reason=Preempted", "resourceVersion": str(cluster.store.version)}
        async with kube.watch("/api/v1/events", **query) as lines:
            await kube.post("/api/v1/namespaces/team/events", {"metadata": {"name": "other"}, "reason": "Other"})
            victim = pod("victim", "low")
            victim["spec"]["nodeName"] = "n0"
            add(cluster.simulation, victim, pod("preemptor", "high"))

            line = await lines.next()
            assert line["object"]["reason"] == "Preempted"
            assert line["object"]["involvedObject"]["name"] == "victim"


async def test_a_watch_of_metadata_carries_no_more() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, left_alone("a"))
        headers = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}

        async with kube._session.get(PODS, params={"watch": "true"}, headers=headers) as response:
            line = await response.content.readline()

        assert b'"kind":"PartialObjectMetadata"' in line
        assert b'"spec"' not in line


async def test_a_closed_watch_is_forgotten() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, left_alone("a"))
        async with kube.watch(PODS) as lines:
            await lines.take(1)
            assert cluster.faults.open_watches == 1

    assert cluster.faults.open_watches == 0
