"""`/api/v1/pending`, `/api/v1/why`, `/api/v1/what-if` and `/pending` over real sockets."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession
from msgspec.structs import replace

from gputally.accounting.fleet.pending_now import PendingNow, VerdictsDisabled
from gputally.model.advice import PriorityChoice
from gputally.model.api.what_if import BODY_BYTES
from gputally.model.api.why import NOT_FOUND_HEADER
from gputally.web import pending_routes
from gputally.web.access_policy import AccessPolicy, digest
from gputally.web.pending_routes import BODIES, PendingRoutes
from gputally.web.server import serve
from tests.fakes.policies import SiteClient
from tests.unit.answers.pending_world import Past, holds, node, waits, world
from tests.unit.web.test_server import site

RESTRICTED = AccessPolicy(tokens={digest("t"): "anna"}, tenants={"anna": frozenset({"ml"})})
CLASSES = [PriorityChoice("batch", 400), PriorityChoice("top", 9000), PriorityChoice("quiet", 900, may_preempt=False)]


def state(*, with_room: bool = True) -> PendingNow:
    """Three pods wait; the GPUs are held by tenants `api` and `ml`."""
    del with_room
    return world(
        [node("secret-node"), node("g2", 4)],
        [
            holds("serve", 6, on="secret-node", tier="serving", priority=800, namespace="rivals"),
            holds("other", 2, on="secret-node"),
            holds("x", 4, on="g2", namespace="rivals"),
            waits("a", 8),
            waits("b", 8),
            waits("foreign", 16, namespace="rivals"),
        ],
        classes=CLASSES,
    )


@asynccontextmanager
async def served(policy: AccessPolicy | None = None, read: Any = state) -> AsyncIterator[ClientSession]:  # noqa: ANN401 - a fake
    what = replace(site(routes=PendingRoutes(read, Past()).routes()), bodies=BODIES)
    headers = {"Authorization": "Bearer t"} if policy else {}
    async with (
        serve(what, addresses=["127.0.0.1:0"], policy_source=lambda: policy or AccessPolicy()) as [address],
        ClientSession(f"http://{address}", headers=headers) as client,
    ):
        yield client


async def read(client: ClientSession, path: str, **parameters: str) -> tuple[int, Any]:
    async with client.get(path, params=parameters) as answer:
        return answer.status, await answer.json() if answer.content_type == "application/json" else await answer.text()


async def test_all_waiting_pods_are_listed_with_the_sums_by_reason() -> None:
    async with served() as client:
        status, found = await read(client, "/api/v1/pending")

    assert (status, found["pod_count"], found["currency"]) == (200, 3, "EUR")
    assert [(each["reason"], each["pods"], each["gpus"]) for each in found["reasons"]] == [
        ("capacity", 2, 16.0),
        ("impossible", 1, 16.0),
    ]
    assert [(each["tenant"], each["pods"], each["reason"]) for each in found["tenants"]] == [
        ("ml", 2, "capacity"),
        ("rivals", 1, "impossible"),
    ]
    assert [each["pod"] for each in found["pods"]] == ["a", "b", "foreign"]


async def test_pages_follow_each_other_and_keep_the_filters() -> None:
    names: list[str] = []
    async with served() as client:
        path: str | None = "/api/v1/pending?namespace=ml&limit=1"
        while path:
            _, found = await read(client, path)
            assert found["pod_count"] == 2
            assert found["reasons"][0]["pods"] == 2, "the sums are of all pages"
            names += [each["pod"] for each in found["pods"]]
            path = found["next"]

    assert names == ["a", "b"]


async def test_filters_select_pods() -> None:
    async with served() as client:
        _, by_reason = await read(client, "/api/v1/pending", reason="impossible")
        _, by_namespace = await read(client, "/api/v1/pending", namespace="quiet")
        _, by_tenant = await read(client, "/api/v1/pending", tenant="nobody")

    assert [each["pod"] for each in by_reason["pods"]] == ["foreign"]
    assert (by_tenant["pods"], by_tenant["unknown"]) == ([], ["tenant nobody"])
    assert by_namespace["unknown"] == [], "that namespace exists"


async def test_a_restricted_user_sees_own_pods_and_of_others_only_tier_and_gpus() -> None:
    async with served(RESTRICTED) as client:
        _, pending = await read(client, "/api/v1/pending", helps="true")
        _, why = await read(client, "/api/v1/why", namespace="ml", pod="a")
        _, what_if = await read(client, "/api/v1/what-if", gpus="8", **{"class": "top"})
        fits_status, fits = await read(client, "/api/v1/fits")
        _, page = await read(client, "/pending")
        _, why_page = await read(client, "/pending/why", namespace="ml", pod="a")
        page_status, _ = await read(client, "/pending/why", namespace="rivals", pod="foreign")
        status, _ = await read(client, "/api/v1/why", namespace="rivals", pod="foreign")

    assert [each["pod"] for each in pending["pods"]] == ["a", "b"]
    assert (status, page_status) == (404, 404), "whether it exists is not theirs to know"
    assert "<td>pods of others</td>" in why_page
    hidden = [each for each in why["answers"][0]["occupants"] if each["pod"] is None]
    assert [(each["tier"], each["gpus"]) for each in hidden] == [("serving", 6.0)]
    assert (fits_status, [each["pool"] for each in fits["pools"]]) == (200, [None])
    everything = json.dumps([pending, why, what_if, fits]) + page + why_page
    assert everything.count("secret-node") == everything.count('"pod": "other"'), "only where a pod of theirs runs"
    for secret in ('serve"', "uid-serve", "uid-x", "foreign", "rivals"):
        assert secret not in everything
    assert what_if["lost_gpu_hours"] is None


async def test_a_pod_that_does_not_exist_is_named_with_a_hint() -> None:
    async with served() as client, client.get("/api/v1/why", params={"namespace": "rivals", "pod": "a"}) as answer:
        found = answer.status, answer.headers.get(NOT_FOUND_HEADER), await answer.text()

    assert found == (404, "true", "no pod with GPUs is known as rivals/a; did you mean ml/a?\n")


async def test_equal_pods_of_a_job_share_an_answer() -> None:
    async with served() as client:
        _, found = await read(client, "/api/v1/why", pod="foreign")

    assert [each["pod"]["namespace"] for each in found["answers"]] == ["rivals"], "the only pod of that name"


async def test_a_forecast_of_parameters_says_whom_it_would_evict() -> None:
    async with served() as client:
        status, found = await read(client, "/api/v1/what-if", gpus="8", **{"class": "top"})

    [forecast] = found["forecasts"]
    assert (status, forecast["bound"], forecast["nodes"]) == (200, 1, ["secret-node"])
    assert {each["pod"] for each in forecast["victims"]} == {"serve", "other"}
    lost = 2 * 3580 / 3600  # of "other": a pod that serves users loses no work
    assert found["lost_gpu_hours"] == pytest.approx(lost)
    assert float(found["lost_cost"]) == pytest.approx(2.21 * lost)


async def test_a_forecast_of_a_class_that_never_preempts_waits() -> None:
    async with served() as client:
        _, found = await read(client, "/api/v1/what-if", gpus="8", **{"class": "quiet"})

    [forecast] = found["forecasts"]
    assert (forecast["bound"], forecast["reason"], forecast["victims"]) == (0, "never_preempts", [])


async def test_a_manifest_is_forecast_template_by_template() -> None:
    containers = [{"resources": {"limits": {"nvidia.com/gpu": 4}}}]
    template = {"spec": {"priorityClassName": "top", "containers": containers}}
    roles = {"Master": {"template": template}, "Worker": {"replicas": 2, "template": template}}
    body = {"kind": "PyTorchJob", "metadata": {"name": "llm"}, "spec": {"pytorchReplicaSpecs": roles}}
    async with served() as client, client.post("/api/v1/what-if", json=body) as answer:
        found = await answer.json()

    assert [(each["name"], each["pods"], each["bound"]) for each in found["forecasts"]] == [
        ("PyTorchJob default/llm Master", 1, 1),
        ("PyTorchJob default/llm Worker", 2, 2),
    ]
    assert sorted(pod["pod"] for each in found["forecasts"] for pod in each["victims"]) == ["other", "serve", "x"]


@pytest.mark.parametrize(
    ("path", "parameters", "message"),
    [
        ("pending", {"limit": "1001"}, "limit: '1001' is not valid; use a number from 0 to 1000"),
        ("pending", {"reason": "luck"}, "reason: 'luck' is not valid; use no_scheduler, "),
        ("pending", {"helps": "1"}, "helps: '1' is not valid; use true, false"),
        (
            "pending",
            {"pod": "a"},
            "unknown parameter pod; use namespace, tenant, tier, job, reason, limit, offset, helps",
        ),
        ("why", {}, "pod: name one pod or one job"),
        ("why", {"namespace": "ml"}, "pod: name one pod or one job"),
        ("why", {"job": "a"}, "namespace: is missing"),
        ("why", {"namespace": "ml", "pod": "a\0"}, "a parameter contains a NUL character"),
        ("what-if", {"gpus": "8", "class": "none-such"}, "PriorityClass 'none-such' does not exist; there are batch, "),
        ("what-if", {"gpus": "-1"}, "gpus: '-1' is not valid"),
        ("what-if", {"gpus": "9" * 400}, "gpus: '9999"),
    ],
)
async def test_a_wrong_parameter_is_named(path: str, parameters: dict[str, str], message: str) -> None:
    async with served() as client:
        status, text = await read(client, f"/api/v1/{path}", **parameters)

    assert status == 400
    assert text.startswith(message)


async def test_without_verdicts_the_answer_says_how_to_turn_them_on() -> None:
    def off(*, with_room: bool) -> PendingNow:
        raise VerdictsDisabled(with_room)

    async with served(read=off) as client:
        for path in ("/api/v1/pending", "/api/v1/why?namespace=a&pod=b", "/pending"):
            status, text = await read(client, path)
            assert (status, text) == (503, "waits are not explained; start the aggregator with --pending.reasons=on\n")


POST = b"POST /api/v1/what-if HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(POST + f"Content-Length: {BODY_BYTES + 1}\r\n\r\n".encode(), 413, id="too long"),
        pytest.param(POST + b"Content-Length: 9" + b"0" * 30 + b"\r\n\r\n", 400, id="a length beyond all"),
        pytest.param(POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 413, id="in chunks"),
        pytest.param(POST + b"Content-Length: 5\r\n\r\n", 400, id="never comes"),
        pytest.param(POST + b"Content-Length: 5\r\n\r\nhello", 400, id="no JSON"),
        pytest.param(POST.replace(b"POST", b"GET") + b"Content-Length: 5\r\n\r\nhello", 413, id="GET with a body"),
        pytest.param(POST.replace(b"what-if", b"why") + b"Content-Length: 5\r\n\r\nhello", 413, id="of another page"),
    ],
)
async def test_a_hostile_body_is_rejected_and_the_server_answers_on(
    data: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_routes, "_BODY_SECONDS", 0.2)
    what = replace(site(routes=PendingRoutes(state, Past()).routes()), bodies=BODIES)
    async with serve(what, addresses=["127.0.0.1:0"]) as [address]:
        client = SiteClient("http", address.host, address.port)
        heard = await client.send(data, within=2)

        assert heard.statuses == [status]
        assert (await client.get("/api/v1/pending")).status == 200


async def test_a_body_is_not_read_before_its_sender_is_known() -> None:
    what = replace(site(routes=PendingRoutes(state, Past()).routes()), bodies=BODIES)
    async with serve(what, addresses=["127.0.0.1:0"], policy_source=lambda: RESTRICTED) as [address]:
        heard = await SiteClient("http", address.host, address.port).send(POST + b"Content-Length: 5\r\n\r\n", within=2)

    assert (heard.statuses, heard.hung_up) == ([401], True)
