"""API discovery: asked for lazily, believed for a while, and nothing that a tenant invents is asked for."""

import asyncio

import pytest

from gputally.errors import ApiForbidden, ApiUnreachable
from gputally.kube.api import Api
from gputally.kube.discovery import LIFETIME_SECONDS, MOST_BYTES, RETRY_SECONDS, Discovery, Served
from tests.fakes.discovery import group_list, resource_list
from tests.fakes.scripted_api import PATIENCE_SECONDS, ScriptedApi
from tests.unit.kube.conftest import Seconds


@pytest.fixture
def discovery(api: Api, seconds: Seconds) -> Discovery:
    return Discovery(api, now=seconds)


def ask(discovery: Discovery, api_version: str, kind: str) -> asyncio.Task[Served | None]:
    """The question in the background, so that the test can answer it."""
    return asyncio.create_task(asyncio.wait_for(discovery.served(api_version, kind), PATIENCE_SECONDS))


async def answer(server: ScriptedApi, path: str, document: object) -> None:
    request = await server.request()
    assert request.target == path
    request.answer(document)


async def test_a_kind_is_served_where_the_server_says(server: ScriptedApi, discovery: Discovery) -> None:
    asked = ask(discovery, "ml.example/v1", "Buch")
    await answer(server, "/apis", group_list())
    await answer(server, "/apis/ml.example/v1", resource_list("ml.example/v1"))
    served = await asked

    assert served == Served("ml.example/v1", "buecher", namespaced=True)
    assert served.root == "/apis/ml.example/v1"
    assert served.resource == ("ml.example", "buecher")


async def test_the_core_kinds_need_no_list_of_groups(server: ScriptedApi, discovery: Discovery) -> None:
    asked = ask(discovery, "v1", "Node")
    await answer(server, "/api/v1", resource_list("v1"))
    served = await asked

    assert served == Served("v1", "nodes", namespaced=False)
    assert (served.root, served.resource) == ("/api/v1", ("", "nodes"))


async def test_each_document_is_read_once_in_its_lifetime(
    server: ScriptedApi, discovery: Discovery, seconds: Seconds
) -> None:
    asked = [ask(discovery, "batch/v1", kind) for kind in ("Job", "CronJob", "Invented")]
    await answer(server, "/apis", group_list())
    await answer(server, "/apis/batch/v1", resource_list("batch/v1"))
    assert [served and served.plural for served in await asyncio.gather(*asked)] == ["jobs", "cronjobs", None]

    seconds.now += LIFETIME_SECONDS - 1
    assert await discovery.served("batch/v1", "Job")
    assert server.is_left_alone
    seconds.now += 1
    again = ask(discovery, "batch/v1", "Job")
    await answer(server, "/apis", group_list())
    await answer(server, "/apis/batch/v1", resource_list("batch/v1"))
    assert await again


async def test_group_versions_that_the_server_does_not_list_are_not_asked_for_and_not_kept(
    server: ScriptedApi, discovery: Discovery
) -> None:
    asked = ask(discovery, "invented/v0", "Kind")
    await answer(server, "/apis", group_list())
    assert await asked is None

    for number in range(1000):
        assert await discovery.served(f"invented/v{number}", "Kind") is None
    assert server.is_left_alone
    assert discovery._kinds == {}


async def test_a_kind_that_is_installed_later_is_found_after_a_while(
    server: ScriptedApi, discovery: Discovery, seconds: Seconds
) -> None:
    asked = ask(discovery, "ml.example/v1", "Buch")
    await answer(server, "/apis", group_list("batch/v1"))
    assert await asked is None

    seconds.now += LIFETIME_SECONDS
    asked = ask(discovery, "ml.example/v1", "Buch")
    await answer(server, "/apis", group_list())
    await answer(server, "/apis/ml.example/v1", resource_list("ml.example/v1"))
    assert await asked


async def test_a_group_version_that_goes_meanwhile_serves_nothing(server: ScriptedApi, discovery: Discovery) -> None:
    asked = ask(discovery, "batch/v1", "Job")
    await answer(server, "/apis", group_list())
    (await server.request()).refuse(404)

    assert await asked is None


@pytest.mark.parametrize(
    "resource",
    [
        {"name": "jobs/status", "kind": "Job", "namespaced": True, "verbs": ["get"]},
        {"name": "jobs", "kind": "Job", "namespaced": True, "verbs": ["create"]},
        {"name": "../../pods#", "kind": "Job", "namespaced": True, "verbs": ["get"]},
    ],
)
async def test_what_cannot_be_got_is_not_served(
    server: ScriptedApi, discovery: Discovery, resource: dict[str, object]
) -> None:
    asked = ask(discovery, "batch/v1", "Job")
    await answer(server, "/apis", group_list())
    await answer(server, "/apis/batch/v1", {"resources": [resource]})

    assert await asked is None


async def test_a_failure_is_remembered_for_a_minute(
    server: ScriptedApi, discovery: Discovery, seconds: Seconds
) -> None:
    asked = [ask(discovery, "batch/v1", "Job") for _ in range(3)]
    (await server.request()).refuse(503)
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(result, ApiUnreachable) for result in results)

    seconds.now += RETRY_SECONDS - 1
    with pytest.raises(ApiUnreachable, match="503"):
        await discovery.served("batch/v1", "Job")
    assert server.is_left_alone
    seconds.now += 1
    again = ask(discovery, "batch/v1", "Job")
    await answer(server, "/apis", group_list())
    await answer(server, "/apis/batch/v1", resource_list("batch/v1"))
    assert await again


async def test_while_no_new_document_can_be_read_the_old_one_holds(
    server: ScriptedApi, discovery: Discovery, seconds: Seconds
) -> None:
    asked = ask(discovery, "v1", "Pod")
    await answer(server, "/api/v1", resource_list("v1"))
    first = await asked

    seconds.now += LIFETIME_SECONDS
    again = ask(discovery, "v1", "Pod")
    (await server.request()).refuse(500)
    assert await again == first


async def test_without_the_right_to_discover_it_is_said_which(server: ScriptedApi, discovery: Discovery) -> None:
    asked = ask(discovery, "batch/v1", "Job")
    await answer(server, "/apis", group_list())
    (await server.request()).refuse(403)

    with pytest.raises(ApiForbidden, match="grant get on the non-resource URL '/apis/batch/v1'"):
        await asked


async def test_a_document_without_end_is_not_read(server: ScriptedApi, discovery: Discovery) -> None:
    asked = ask(discovery, "batch/v1", "Job")
    (await server.request()).answer(b" " * (MOST_BYTES + 1))

    with pytest.raises(ApiUnreachable, match="larger than 8192 KiB"):
        await asked
