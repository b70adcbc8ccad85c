"""Before the watches begin: whose cluster it is, and whether all may be read."""

import logging
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gputally.errors import ApiError, ApiForbidden, ApiUnreachable
from gputally.kube import identify as identify_module
from gputally.kube.api import Api
from gputally.kube.connection import Choice, connect
from gputally.kube.failures import remedy
from gputally.kube.identify import identify
from gputally.kube.watched import Resource, resources
from gputally.model.kube.events import Event
from gputally.model.kube.kinds import Kind
from gputally.model.kube.nodes import Node
from gputally.model.rules import Rules
from gputally_sim.cluster import SimCluster
from tests.fakes.kubeconfigs import kubeconfig

RULES = Rules()


@pytest.fixture
async def api(kubeconfig_file: str) -> AsyncIterator[Api]:
    async with connect(Choice(kubeconfig=kubeconfig_file)) as api:
        yield api


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identify_module, "_RETRY_S", 0.001)
    monkeypatch.setattr(identify_module, "_WARM_UP_S", 0)


async def test_a_cluster_is_known_by_its_oldest_namespace(api: Api, cluster: SimCluster) -> None:
    uid = cluster.registry.read("namespaces", ("", "kube-system")).doc["metadata"]["uid"]

    assert await identify(api, RULES, patience_s=10) == uid


async def test_all_missing_rights_are_named_at_once(api: Api, cluster: SimCluster) -> None:
    cluster.faults.forbidden = {kind.value for kind in Kind}

    with pytest.raises(ApiForbidden) as told:
        await identify(api, RULES, patience_s=10)

    remedies = [line.rpartition("; ")[2] for line in str(told.value).splitlines()]
    assert remedies == [
        "grant list,watch on pods in API group ''",
        "grant list,watch on nodes in API group ''",
        "grant list,watch on namespaces in API group ''",
        "grant list,watch on priorityclasses in API group 'scheduling.k8s.io'",
        "grant list,watch on events in API group ''",
        "grant list,watch on jobs in API group 'batch'",
    ]
    assert set(remedies) == {remedy(each.path) for each in resources(RULES)}


async def test_a_login_that_is_refused_is_told_once_with_where_it_comes_from(tmp_path: Path) -> None:
    async with SimCluster(start_us=0, token="right") as cluster:
        file = kubeconfig(tmp_path, cluster.url, {"token": "expired"})
        async with connect(Choice(kubeconfig=file)) as api:
            with pytest.raises(ApiForbidden) as told:
                await identify(api, RULES, patience_s=10)

    message = str(told.value)
    assert "401" in message
    assert message.endswith(f"renew the credentials in {file}: users[u]")
    assert "\n" not in message
    assert "grant" not in message


async def test_a_server_that_is_busy_at_first_is_waited_for(
    api: Api, cluster: SimCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.faults.refuse(5, 503)

    await identify(api, RULES, patience_s=10)

    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(said) == 1, "the same trouble was logged again"
    assert said[0].startswith(f"waiting for the API server: {api.server}/api/v1/pods: 503")


async def test_a_server_that_stays_away_is_given_up_with_the_last_reason(api: Api, cluster: SimCluster) -> None:
    cluster.faults.refuse(10**6, 503)

    with pytest.raises(ApiUnreachable) as told:
        await identify(api, RULES, patience_s=0.1)

    assert str(told.value).startswith(f"{api.server}/api/v1/pods: 503")
    assert str(told.value).endswith("; gave up after 0.1 s, check the server of the kubeconfig and the network")


async def test_a_server_without_any_answer_is_given_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with connect(Choice(kubeconfig=kubeconfig(tmp_path, address, {"token": "any"}))) as api:
            with pytest.raises(ApiUnreachable, match=rf"{address}: no response; gave up after 0.1 s"):
                await identify(api, RULES, patience_s=0.1)


async def test_a_server_that_lacks_a_resource_is_not_waited_for(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = Resource(kind=Kind.NODES, path="/api/v1/oddities", type=Node)
    monkeypatch.setattr(identify_module, "resources", lambda _: (*resources(RULES), odd))

    with pytest.raises(ApiError, match="404"):
        await identify(api, RULES, patience_s=10)


async def test_what_can_be_done_without_keeps_nothing_from_starting(
    api: Api, cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.faults.forbidden = {"events", "priorityclasses"}
    odd = Resource(kind=Kind.EVENTS, path="/apis/odd/v1/oddities", type=Event, without="nothing is odd")
    monkeypatch.setattr(identify_module, "resources", lambda _: (*resources(RULES), odd))

    assert await identify(api, RULES, patience_s=10)
