"""Lines of a watch, decoded."""

import json

import msgspec
import pytest

from gputally.errors import MalformedObject
from gputally.kube.watch_events import BookmarkEvent, Change, decoder, deletion
from gputally.model.kube.events import Event
from gputally.model.kube.meta import Object, Status
from gputally.model.kube.nodes import Node
from gputally.model.kube.pods import Pod
from gputally.model.kube.policy import PriorityClass
from tests.fakes.objects import bookmark, deleted, failure, line


@pytest.mark.parametrize("shape", [Pod, Node, PriorityClass, Event])
def test_bookmarks_and_errors_are_told_from_changes_of_every_kind(shape: type[Object]) -> None:
    decode = decoder(shape)

    status = decode(failure(410, "Expired"))
    assert decode(bookmark(5)) == BookmarkEvent(version="5")
    assert isinstance(status, Status)
    assert status.code == 410


def test_a_change_carries_the_object_in_its_type() -> None:
    change = decoder(Pod)(deleted("a", 5))

    assert isinstance(change, Change)
    assert isinstance(change.object, Pod)
    assert (change.type, change.object.metadata.name) == ("DELETED", "a")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b'{"type": "ADDED"}',
        b'{"type": "ADDED", "object": 5}',
        b'{"type": "BOOKMARK", "object": []}',
        b'{"type": "ADDED", "object": {"metadata": {"name": "\xff"}}}',
        b'{"type": "ADDED", "object": {"metadata": {"creationTimestamp": "yesterday"}}}',
        b'{"type": "ADDED", "object": {"x": ' + b"[" * 100_000,
    ],
)
def test_a_line_that_says_nothing_raises_what_the_watch_survives(text: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        decoder(Pod)(text)


@pytest.mark.parametrize(("lacking", "text"), [("uid", "ml/a: uid is missing"), ("resourceVersion", "resourceV")])
def test_an_object_without_identity_is_malformed(lacking: str, text: str) -> None:
    document = json.loads(line("ADDED", {"metadata": {"name": "a", "namespace": "ml", "uid": "u", lacking: ""}}))

    with pytest.raises(MalformedObject, match=text):
        decoder(Pod)(json.dumps(document).encode())


def test_the_deletion_of_an_object_that_cannot_be_decoded_is_not_missed() -> None:
    metadata = {"name": "a", "namespace": "ml", "uid": "u", "resourceVersion": "7"}
    line = msgspec.json.encode({"type": "DELETED", "object": {"metadata": metadata, "spec": "a string"}})

    told = deletion(line, Pod)

    assert told is not None
    assert (told.type, told.object.metadata.uid, told.object.metadata.resource_version) == ("DELETED", "u", "7")
    assert deletion(line.replace(b"DELETED", b"MODIFIED"), Pod) is None
    assert deletion(line.replace(b'"u"', b'""'), Pod) is None
    assert deletion(b"no JSON", Pod) is None
