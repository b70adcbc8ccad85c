import pytest

from tests.unit.sim.kube import PODS, serving
from tests.unit.sim.world import add, key, node, node_of, pod, seconds

UNNAMED = {"metadata": {"name": "x"}, "spec": {"containers": [{}]}}


@pytest.mark.parametrize("path", ["/readyz", "/healthz", "/livez"])
async def test_probes_answer_without_a_token(path: str) -> None:
    async with serving(token="secret") as (_, kube), kube._session.get(path) as response:
        assert (response.status, await response.text()) == (200, "ok")


async def test_a_wrong_token_is_unauthorized() -> None:
    async with serving(token="secret") as (_, kube):
        for authorization, expected in (("", 401), ("Bearer wrong", 401), ("Bearer secret", 200)):
            status, _ = await kube.call("GET", "/api/v1/nodes", headers={"Authorization": authorization})
            assert status == expected


async def test_the_version_is_that_of_a_kubernetes_release() -> None:
    async with serving() as (_, kube):
        assert (await kube.get("/version"))["gitVersion"] == "v1.36.3"


async def test_discovery_names_groups_and_resources() -> None:
    async with serving() as (_, kube):
        groups = {group["name"] for group in (await kube.get("/apis"))["groups"]}
        jobs = (await kube.get("/apis/batch/v1"))["resources"]

        assert {"apps", "batch", "events.k8s.io", "scheduling.k8s.io", "policy"} <= groups
        assert {entry["name"] for entry in jobs} == {"jobs", "jobs/status", "cronjobs", "cronjobs/status"}


async def test_an_object_posted_is_stored_admitted_and_returned() -> None:
    async with serving(nodes=0) as (_, kube):
        created = await kube.post(PODS, pod("a", "high"))

        assert created["kind"] == "Pod"
        assert created["spec"]["priority"] == 1000
        assert created["metadata"]["uid"]


async def test_a_patched_status_changes_nothing_else() -> None:
    async with serving() as (cluster, kube):
        status, patched = await kube.call(
            "PATCH", "/api/v1/nodes/n0/status", {"status": {"allocatable": {"nvidia.com/gpu": "0"}}}
        )

        assert status == 200
        assert patched["status"]["allocatable"]["nvidia.com/gpu"] == "0"
        assert patched["metadata"]["uid"] == cluster.registry.read("nodes", ("", "n0")).doc["metadata"]["uid"]


async def test_a_patch_in_another_format_is_not_supported() -> None:
    async with serving() as (_, kube):
        headers = {"Content-Type": "application/json-patch+json"}

        status, _ = await kube.call("PATCH", "/api/v1/nodes/n0", {}, headers=headers)

        assert status == 415


async def test_a_lease_is_taken_by_whoever_replaces_its_latest_version() -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/team/leases"
    async with serving() as (_, kube):
        lease = await kube.post(path, {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "a"}})

        taken = {**lease, "spec": {"holderIdentity": "b"}}
        first, _ = await kube.call("PUT", f"{path}/leader", taken)
        second, answer = await kube.call("PUT", f"{path}/leader", taken)

        assert (first, second, answer["reason"]) == (200, 409, "Conflict")


async def test_the_binding_subresource_binds() -> None:
    async with serving(nodes=0, speed=0.001) as (cluster, kube):
        add(cluster.simulation, pod("a"))
        cluster.registry.create("nodes", node("n7"))

        await kube.post(f"{PODS}/a/binding", {"target": {"kind": "Node", "name": "n7"}})

        assert node_of(cluster.simulation, "a") == "n7"


@pytest.mark.parametrize("in_query", [True, False])
async def test_the_grace_of_a_deletion_is_read_from_query_or_body(in_query: bool) -> None:  # noqa: FBT001 - two ways
    async with serving(speed=0.001) as (cluster, kube):
        add(cluster.simulation, pod("a", stops_after_us=seconds(100)))
        cluster.registry.bind(key("a"), "n0")

        query = {"gracePeriodSeconds": "7"} if in_query else {}
        body = None if in_query else {"gracePeriodSeconds": 7}
        _, deleted = await kube.call("DELETE", f"{PODS}/a", body, params=query)

        assert deleted["metadata"]["deletionGracePeriodSeconds"] == 7


async def test_a_deletion_meant_for_another_incarnation_conflicts() -> None:
    async with serving() as (cluster, kube):
        add(cluster.simulation, pod("a"))

        status, answer = await kube.call("DELETE", f"{PODS}/a", {"preconditions": {"uid": "another"}})

        assert (status, answer["reason"]) == (409, "Conflict")


@pytest.mark.parametrize(
    ("verb", "path", "code", "reason"),
    [
        ("GET", f"{PODS}/absent", 404, "NotFound"),
        ("GET", "/apis/kueue.x-k8s.io/v1beta1/workloads", 404, "NotFound"),
        ("GET", "/elsewhere", 404, "NotFound"),
        ("DELETE", f"{PODS}/absent", 404, "NotFound"),
        ("GET", f"{PODS}?fieldSelector=spec.x=y", 400, "BadRequest"),
        ("GET", f"{PODS}?resourceVersion=x", 400, "BadRequest"),
        ("GET", f"{PODS}?limit=x", 400, "BadRequest"),
        ("DELETE", PODS, 405, "MethodNotAllowed"),
        ("DELETE", "/api/v1/nodes/n0?gracePeriodSeconds=x", 400, "BadRequest"),
    ],
)
async def test_refusals_are_status_objects(verb: str, path: str, code: int, reason: str) -> None:
    async with serving() as (_, kube):
        status, answer = await kube.call(verb, path)

        assert (status, answer["code"], answer["reason"], answer["kind"]) == (code, code, reason, "Status")


@pytest.mark.parametrize("body", [[1], {"metadata": 7}, {"metadata": {}}, {"metadata": {"name": "x"}}, UNNAMED])
async def test_a_body_that_makes_no_sense_is_refused(body: object) -> None:
    async with serving() as (_, kube):
        status, _ = await kube.call("POST", PODS, body)

        assert status in (400, 422)


async def test_a_job_without_a_template_is_invalid() -> None:
    async with serving() as (_, kube):
        status, _ = await kube.call("POST", "/apis/batch/v1/namespaces/team/jobs", {"metadata": {"name": "j"}})

        assert status == 422


async def test_both_event_apis_show_the_same_event_in_their_own_words() -> None:
    newer = "/apis/events.k8s.io/v1/namespaces/team/events"
    async with serving() as (_, kube):
        await kube.post(
            newer,
            {
                "metadata": {"name": "e"},
                "reason": "Preempted",
                "note": "text",
                "regarding": {"kind": "Pod", "name": "a"},
            },
        )

        core = await kube.get("/api/v1/namespaces/team/events/e")
        own = await kube.get(f"{newer}/e")

        assert (core["apiVersion"], core["message"], core["involvedObject"]["name"]) == ("v1", "text", "a")
        assert (own["apiVersion"], own["note"], own["regarding"]["name"]) == ("events.k8s.io/v1", "text", "a")
        assert core["metadata"] == own["metadata"]


@pytest.mark.parametrize("path", ["/version", "/api/v1/nodes", "/api/v1/nodes/none", "/api/v1/pods?watch=true"])
async def test_every_answer_is_dated_by_the_clock_of_the_model(path: str) -> None:
    async with serving(speed=1e-6) as (_, kube), kube._session.get(path) as response:
        assert response.headers.getall("Date") == ["Mon, 02 Mar 2026 06:00:00 GMT"]
