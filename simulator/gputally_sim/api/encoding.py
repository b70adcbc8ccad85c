"""Encodes stored objects for clients."""

import msgspec

from gputally_sim.api.resources import EVENTS, Resource
from gputally_sim.api.store import Stored
from gputally_sim.control.recorder import other_view
from gputally_sim.documents import Doc

encode = msgspec.json.Encoder().encode

_PARTIAL_TYPE = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",'


def bare(resource: Resource, stored: Stored) -> bytes:
    """The object without kind and apiVersion, as in lists."""
    if resource is not EVENTS:
        return stored.body
    if stored.other_view is None:
        stored.other_view = encode(other_view(stored.doc))
    return stored.other_view


def typed(resource: Resource, stored: Stored) -> bytes:
    """The object with kind and apiVersion, as in gets and watches."""
    return _type(resource) + bare(resource, stored)[1:]


def metadata_only(stored: Stored) -> bytes:
    """A PartialObjectMetadata; unlike other objects it has kind and apiVersion in lists too."""
    return _PARTIAL_TYPE + b'"metadata":' + encode(stored.doc["metadata"]) + b"}"


def listing(resource: Resource, metadata: Doc, items: list[Stored], *, partial: bool) -> bytes:
    """A list document."""
    if partial:
        head = b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"'
        bodies = [metadata_only(stored) for stored in items]
    else:
        head = b'{"kind":"%sList","apiVersion":"%s"' % (resource.kind.encode(), resource.api_version.encode())
        bodies = [bare(resource, stored) for stored in items]
    return head + b',"metadata":' + encode(metadata) + b',"items":[' + b",".join(bodies) + b"]}"


def event_line(verb: str, body: bytes) -> bytes:
    """One line of a watch."""
    return b'{"type":"%s","object":%s}\n' % (verb.encode(), body)


def bookmark(resource: Resource, version: int, *, initial_events_end: bool = False) -> bytes:
    """A bookmark line of a watch; `creationTimestamp` is null, as up to Kubernetes 1.33."""
    metadata: Doc = {"resourceVersion": str(version), "creationTimestamp": None}
    if initial_events_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event_line("BOOKMARK", _type(resource) + b'"metadata":' + encode(metadata) + b"}")


def _type(resource: Resource) -> bytes:
    return b'{"kind":"%s","apiVersion":"%s",' % (resource.kind.encode(), resource.api_version.encode())
