from tests.unit.sim.kube import PODS, Kube, names, serving
from tests.unit.sim.world import NAMESPACE, add, pod

PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}


async def test_a_list_has_its_kind_and_version_and_its_items_have_neither_kind_nor_api_version() -> None:
    async with serving() as (cluster, kube):
        add(cluster.simulation, pod("a"))

        listing = await kube.get("/api/v1/pods")

        assert (listing["kind"], listing["apiVersion"]) == ("PodList", "v1")
        assert listing["metadata"]["resourceVersion"] == str(cluster.store.version)
        assert not {"kind", "apiVersion"} & set(listing["items"][0])


async def test_an_object_by_itself_has_kind_and_api_version() -> None:
    async with serving() as (_, kube):
        node = await kube.get("/api/v1/nodes/n0")

        assert (node["kind"], node["apiVersion"]) == ("Node", "v1")


async def test_lists_are_sorted_by_namespace_and_name() -> None:
    async with serving() as (cluster, kube):
        cluster.registry.create("pods", pod("z"), "default")
        add(cluster.simulation, pod("b"), pod("a"))

        assert names(await kube.get("/api/v1/pods")) == ["z", "a", "b"]


async def test_a_namespaced_list_has_the_objects_of_that_namespace() -> None:
    async with serving() as (cluster, kube):
        cluster.registry.create("pods", pod("z"), "default")
        add(cluster.simulation, pod("a"))

        assert names(await kube.get(PODS)) == ["a"]


async def test_lists_are_selected_by_fields_and_labels() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, pod("a"), pod("b"))

        assert names(await kube.get(PODS, fieldSelector="metadata.name!=a")) == ["b"]
        assert names(await kube.get(PODS, labelSelector="app in (a)")) == ["a"]
        assert names(await kube.get(PODS, fieldSelector="status.phase=Running")) == []


async def pages(kube: Kube, **query: str) -> list[list[str]]:
    found = []
    listing = await kube.get(PODS, limit="2", **query)
    found.append(names(listing))
    while token := listing["metadata"].get("continue"):
        listing = await kube.get(PODS, **{"limit": "2", **query, "continue": token})
        found.append(names(listing))
    return found


async def test_pages_together_are_the_list() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, *(pod(name) for name in "abcde"))

        assert await pages(kube) == [["a", "b"], ["c", "d"], ["e"]]


async def test_later_pages_show_the_state_of_the_first() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, *(pod(name) for name in "abc"))
        first = await kube.get(PODS, limit="2")
        assert first["metadata"]["remainingItemCount"] == 1

        add(cluster.simulation, pod("d"))
        cluster.registry.delete("pods", (NAMESPACE, "c"))
        second = await kube.get(PODS, **{"limit": "2", "continue": first["metadata"]["continue"]})

        assert names(second) == ["c"]
        assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_an_expired_token_is_gone_and_offers_one_for_the_present_state() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, *(pod(name) for name in "abc"))
        first = await kube.get(PODS, limit="2")
        add(cluster.simulation, pod("d"))
        cluster.store.compact()

        status, answer = await kube.call("GET", PODS, params={"continue": first["metadata"]["continue"]})
        assert (status, answer["reason"]) == (410, "Expired")

        rest = await kube.get(PODS, **{"continue": answer["metadata"]["continue"]})
        assert names(rest) == ["c", "d"]


async def test_a_token_that_cannot_be_read_is_a_bad_request() -> None:
    async with serving() as (_, kube):
        status, _ = await kube.call("GET", PODS, params={"continue": "nonsense"})

        assert status == 400


async def test_a_list_from_the_cache_ignores_the_limit() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, *(pod(name) for name in "abc"))

        assert names(await kube.get(PODS, limit="1", resourceVersion="0")) == ["a", "b", "c"]


async def test_a_version_not_reached_yet_times_out() -> None:
    async with serving() as (_, kube):
        status, answer = await kube.call("GET", PODS, params={"resourceVersion": "999999"})

        assert (status, answer["reason"]) == (504, "Timeout")


async def test_metadata_alone_can_be_asked_for() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, pod("a"))

        _, one = await kube.call("GET", f"{PODS}/a", headers=PARTIAL)
        _, many = await kube.call("GET", PODS, headers=PARTIAL)

        assert set(one) == {"kind", "apiVersion", "metadata"}
        assert (one["kind"], one["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
        assert many["kind"] == "PartialObjectMetadataList"
        for found in (one, *many["items"]):
            del found["metadata"]["resourceVersion"]  # the scheduler may look at the pod in between
        assert many["items"] == [one]
