import json

from gputally.kube.watched import resources
from gputally.model.rules import Rules
from labs.bench import synthetic, workload
from labs.bench.record import RESOURCES
from labs.bench.replay import as_document, blocks, renamed

POD = synthetic.running_pod(7, 12) + b"\n"
END = {
    "type": "BOOKMARK",
    "object": {"metadata": {"resourceVersion": "15", "annotations": {"k8s.io/initial-events-end": "true"}}},
}


def test_a_repeated_event_differs_only_in_the_uid_of_its_object() -> None:
    first, again = (json.loads(renamed(POD, number))["object"] for number in (0, 255))

    assert first["metadata"].pop("uid") == "00000007-0000-4000-8000-000000000000"
    assert again["metadata"].pop("uid") == "ff000007-0000-4000-8000-000000000000"
    assert first == again


def test_a_streaming_list_is_converted_to_a_plain_list() -> None:
    listing = POD + json.dumps(END, separators=(",", ":")).encode() + b"\n"

    found = json.loads(as_document(listing))

    assert found["metadata"]["resourceVersion"] == "15"
    assert found["items"] == [json.loads(POD)["object"]]


def test_each_event_is_one_chunk() -> None:
    assert b"".join(blocks([b"one\n", b"fourteen bytes"])) == b"4\r\none\n\r\ne\r\nfourteen bytes\r\n"


def test_a_pod_of_the_load_has_a_realistic_size() -> None:
    assert 4_000 < len(POD) < 6_000
    assert workload.pod(7) == workload.pod(7)


def test_all_that_is_watched_by_default_is_recorded() -> None:
    assert {resource.path for resource in resources(Rules())} == RESOURCES.keys()
