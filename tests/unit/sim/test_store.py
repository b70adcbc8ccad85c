import msgspec
import pytest

from gputally_sim.api.refusals import StatusError
from gputally_sim.api.store import Change, Store, Verb
from gputally_sim.documents import Doc


def thing(name: str, **content: object) -> Doc:
    return {"metadata": {"name": name}, **content}


def test_every_write_takes_the_next_version_whatever_the_resource() -> None:
    store = Store()

    versions = [store.put("nodes", thing("a")), store.put("namespaces", thing("b")), store.put("nodes", thing("a"))]

    assert [each.doc["metadata"]["resourceVersion"] for each in versions] == ["1", "2", "3"]


def test_a_removed_object_is_told_of_with_its_last_content_and_a_new_version() -> None:
    store = Store()
    changes: list[Change] = []
    store.put("nodes", thing("a", size=1))
    store.subscribe("nodes", changes.append)

    store.remove("nodes", ("", "a"))

    assert [change.verb for change in changes] == [Verb.DELETED]
    assert changes[0].now.doc == {"metadata": {"name": "a", "resourceVersion": "2"}, "size": 1}


def test_the_bytes_of_a_change_are_those_of_its_document() -> None:
    stored = Store().put("nodes", thing("a", size=1))

    assert msgspec.json.decode(stored.body) == stored.doc


def test_a_later_write_leaves_an_earlier_state_as_it_was() -> None:
    store = Store()
    first = store.put("nodes", thing("a", size=1))

    store.put("nodes", thing("a", size=2))

    assert first.doc["size"] == 1


def test_changes_since_a_version_are_given_in_order() -> None:
    store = Store()
    for name in "abc":
        store.put("nodes", thing(name))

    assert [change.version for change in store.since("nodes", 1)] == [2, 3]


def test_a_version_that_fell_out_of_the_window_is_expired() -> None:
    store = Store(window=2)
    for name in "abcd":
        store.put("nodes", thing(name))

    assert [change.version for change in store.since("nodes", 2)] == [3, 4]
    with pytest.raises(StatusError, match=r"too old resource version: 1 \(2\)"):
        store.since("nodes", 1)


def test_the_window_of_one_resource_is_not_used_up_by_another() -> None:
    store = Store(window=2)
    store.put("namespaces", thing("calm"))
    for name in "abcd":
        store.put("nodes", thing(name))

    assert [change.version for change in store.since("namespaces", 0)] == [1]


def test_compaction_expires_all_versions_before_it() -> None:
    store = Store()
    store.put("nodes", thing("a"))
    store.put("nodes", thing("b"))

    store.compact()

    assert store.since("nodes", 2) == []
    with pytest.raises(StatusError, match="too old"):
        store.since("nodes", 1)


def test_an_unsubscribed_listener_hears_no_more() -> None:
    store = Store()
    changes: list[Change] = []
    unsubscribe = store.subscribe("nodes", changes.append)

    unsubscribe()
    store.put("nodes", thing("a"))

    assert changes == []


def test_the_version_of_a_resource_is_that_of_its_latest_write_whatever_is_forgotten() -> None:
    store = Store()
    store.put("pods", thing("a"))
    store.put("nodes", thing("b"))
    store.compact()

    assert [store.version_of(plural) for plural in ("pods", "nodes", "jobs")] == [1, 2, 0]
