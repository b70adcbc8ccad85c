import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.kube.lists import ListItems

Json = Any
TEXTS = st.text() | st.sampled_from(['},{"metadata":{', '"items":[', "]}", '\\"', '{"metadata":{', "}]}\n"])
SPECS = st.lists(st.dictionaries(TEXTS, TEXTS, max_size=3), max_size=3)
ITEMS = st.lists(
    st.builds(lambda meta, spec: {"metadata": meta, "spec": spec}, st.dictionaries(TEXTS, TEXTS, max_size=3), SPECS),
    max_size=6,
)


def listing(items: Json, *, version: str = "7") -> bytes:
    """As the server writes it."""
    head = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": version}}
    return msgspec.json.encode(head | {"items": items}) + b"\n"


CUSTOM = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"}


def custom_listing(items: Json) -> bytes:
    """Custom resources as the server writes them: sorted by key."""
    document = {"apiVersion": CUSTOM["apiVersion"], "items": [CUSTOM | each for each in items], "kind": "WorkloadList"}
    return msgspec.json.encode(document | {"metadata": {"continue": "", "resourceVersion": "7"}}) + b"\n"


def read(document: bytes, *, size: int) -> tuple[str, list[Json]]:
    reader = ListItems()
    found = [item for i in range(0, len(document), size) for item in reader.feed(document[i : i + size])]
    return reader.version if found else "", [json.loads(item) for item in found + reader.end()]


@given(ITEMS, st.integers(1, 200))
def test_however_the_bytes_are_cut_the_items_are_those_of_the_document(items: list[Json], size: int) -> None:
    _, found = read(listing(items), size=size)

    assert found == items


@given(ITEMS, st.integers(1, 200))
def test_however_a_list_of_custom_resources_is_cut_the_items_are_those_of_the_document(
    items: list[Json], size: int
) -> None:
    document, reader = custom_listing(items), ListItems()
    found = [item for i in range(0, len(document), size) for item in reader.feed(document[i : i + size])]
    found += reader.end()

    assert [json.loads(item) for item in found] == [CUSTOM | each for each in items]
    assert reader.version == "7"


def test_custom_resources_come_before_the_document_ends() -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": name} for name in "ab"]
    padding = "x" * 1000
    items = [{"metadata": {"name": str(n), "ownerReferences": owners}, "spec": padding} for n in range(10)]
    document, reader = custom_listing(items), ListItems()

    assert [json.loads(item)["metadata"]["name"] for item in reader.feed(document[:-200])] == [str(n) for n in range(9)]
    assert reader.version == "", "it is at the end"
    assert len(reader._rest) < 1500


@pytest.mark.parametrize("cut", [2, 3, 30, 60])
def test_a_list_of_custom_resources_that_breaks_off_is_refused(cut: int) -> None:
    reader = ListItems()
    reader.feed(custom_listing([{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}])[:-cut])

    with pytest.raises(ValueError, match=r"."):
        reader.end()


def test_items_come_before_the_document_ends() -> None:
    reader = ListItems()
    document = listing([{"metadata": {"name": str(number)}} for number in range(10)])

    assert [json.loads(item)["metadata"]["name"] for item in reader.feed(document[:-40])] == [str(n) for n in range(8)]
    assert reader.version == "7"


@pytest.mark.parametrize("items", [None, []])
def test_an_empty_list_has_a_version_and_no_items(items: Json) -> None:
    reader = ListItems()

    assert reader.feed(listing(items)) + reader.end() == []
    assert reader.version == "7"


def test_a_list_sorted_by_key_is_read_at_its_end() -> None:
    items = [{"apiVersion": "v1", "metadata": {"name": name}} for name in "ab"]
    document = msgspec.json.encode({"apiVersion": "v1", "items": items, "metadata": {"resourceVersion": "9"}})
    reader = ListItems()

    assert [json.loads(item) for item in reader.feed(document) + reader.end()] == items
    assert reader.version == "9"


@pytest.mark.parametrize("cut", [2, 3, 30, 60])
def test_a_list_that_breaks_off_is_refused(cut: int) -> None:
    reader = ListItems()
    reader.feed(listing([{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}])[:-cut])

    with pytest.raises(ValueError, match=r"."):
        reader.end()


@pytest.mark.parametrize("inner", [b'"x"]}', b'"tolerations":[]}'])
def test_a_list_cut_where_an_array_inside_it_ends_is_refused(inner: bytes) -> None:
    item = {"metadata": {"name": "a"}, "spec": {"containers": [{"args": ["x"]}], "other": {"tolerations": []}, "z": 1}}
    document = listing([item, item])
    reader = ListItems()
    reader.feed(document[: document.rindex(inner) + len(inner)])

    with pytest.raises(ValueError, match=r"."):
        reader.end()


def test_a_long_list_in_another_order_is_read_in_time_linear_in_its_bytes() -> None:
    document = msgspec.json.encode({"apiVersion": "v1", "items": [{"apiVersion": "v1", "x": "y" * 900}] * 1000})
    reader = ListItems()
    for i in range(0, len(document), 1000):
        reader.feed(document[i : i + 1000])

    assert len(reader._whole) > 900  # collected, not joined anew with each chunk
