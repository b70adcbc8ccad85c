"""Annotations of pods: those that are read, and all others, which anyone may write."""

import tracemalloc

import msgspec
import pytest

from gputally.kube.watch_events import Change, decoder
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import Pod
from tests.fakes.objects import added

LARGEST = 256 << 10
"""The API server limits the annotations of an object to this many bytes."""


def decoded(annotations: dict[str, str]) -> Pod:
    change = decoder(PlaceablePod)(added(annotations=annotations))
    assert isinstance(change, Change)
    assert isinstance(change.object, Pod)
    return change.object


def test_an_annotation_is_found_by_its_key() -> None:
    found = decoded({"a": "b", "gputally.io/progress": "12"}).metadata.annotations

    assert found
    assert found.get("gputally.io/progress") == "12"
    assert found.get("gputally.io/progress-unit") is None


def test_an_annotation_that_no_field_reads_is_an_error_of_the_reader() -> None:
    found = decoded({"a": "b"}).metadata.annotations

    assert found
    with pytest.raises(KeyError):
        found.get("a")


@pytest.mark.parametrize(
    "annotations",
    [
        {"hostile.example/text": "\U0001f47e" * (LARGEST // 4)},
        {f"hostile.example/{number}": "v" for number in range(LARGEST // 24)},
    ],
    ids=["one", "thousands"],
)
def test_annotations_that_nobody_reads_take_no_memory(annotations: dict[str, str]) -> None:
    line, decode = added(annotations=annotations), decoder(PlaceablePod)
    tracemalloc.start()
    try:
        pod = decode(line)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert pod
    assert peak < 16 << 10


def test_an_annotation_of_another_type_does_not_make_a_pod_malformed() -> None:
    pod = msgspec.json.decode(b'{"metadata": {"name": "a", "annotations": {"x": 5}}}', type=Pod)

    assert pod.metadata.name == "a"
