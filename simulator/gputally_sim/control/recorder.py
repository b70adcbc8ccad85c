"""Writes Events as the newer event API stores them, and expires them after the server's TTL."""

from functools import partial

from gputally_sim.api.registry import Registry
from gputally_sim.api.resources import BY_PLURAL
from gputally_sim.api.store import Change, Verb
from gputally_sim.documents import Doc, Key, key_of, uid_of
from gputally_sim.instants import HOUR_US, rfc3339, rfc3339_micro

EVENT_TTL_US = HOUR_US
"""kube-apiserver's default `--event-ttl`."""

_SCHEDULER = "default-scheduler"


def preempted(registry: Registry, victim: Doc, preemptor: Doc, node: str) -> None:
    """Write the Preempted Event of a victim. Source: k8s.io/client-go tools/events/event_recorder.go."""
    now_us = registry.agenda.now_us
    namespace, name = key_of(victim)
    event = {
        "metadata": {"name": f"{name}.{now_us * 1000:x}"},
        "type": "Normal",
        "reason": "Preempted",
        "action": "Preempting",
        "message": f"Preempted by pod {uid_of(preemptor)} on node {node}",
        "involvedObject": reference(victim),
        "related": reference(preemptor),
        "eventTime": rfc3339_micro(now_us),
        "reportingComponent": _SCHEDULER,
        "reportingInstance": f"{_SCHEDULER}-sim",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
    }
    registry.create("events", event, namespace)


def failed_create(registry: Registry, namespace: str, owner: Doc, message: str) -> None:
    """Write the FailedCreate Event of a controller. Source: k8s.io/client-go tools/record/event.go, makeEvent."""
    now_us = registry.agenda.now_us
    event = {
        "metadata": {"name": f"{owner['name']}.{now_us * 1000:x}"},
        "type": "Warning",
        "reason": "FailedCreate",
        "message": f"Error creating: {message}",
        "involvedObject": {"namespace": namespace} | {key: owner[key] for key in ("apiVersion", "kind", "name", "uid")},
        "eventTime": None,
        "reportingComponent": f"{owner['kind'].lower()}-controller",
        "source": {"component": f"{owner['kind'].lower()}-controller"},
        "count": 1,
        "firstTimestamp": rfc3339(now_us),
        "lastTimestamp": rfc3339(now_us),
    }
    registry.create("events", event, namespace)


def reference(pod: Doc) -> Doc:
    """An object reference to a pod."""
    namespace, name = key_of(pod)
    return {
        "kind": BY_PLURAL["pods"].kind,
        "namespace": namespace,
        "name": name,
        "uid": uid_of(pod),
        "apiVersion": BY_PLURAL["pods"].api_version,
        "resourceVersion": pod["metadata"]["resourceVersion"],
    }


class EventExpiry:
    """Deletes expired Events; watches receive a DELETED event."""

    def __init__(self, registry: Registry, ttl_us: int = EVENT_TTL_US) -> None:
        self._registry = registry
        self._ttl_us = ttl_us
        registry.store.subscribe("events", self._observe)

    def _observe(self, change: Change) -> None:
        if change.verb is Verb.ADDED:
            expire = partial(self._expire, change.key, uid_of(change.now.doc))
            self._registry.agenda.after(self._ttl_us, expire)

    def _expire(self, key: Key, uid: str) -> None:
        stored = self._registry.store.get("events", key)
        if stored and uid_of(stored.doc) == uid:
            self._registry.delete("events", key)


def other_view(event: Doc) -> Doc:
    """Convert a core/v1 Event to events.k8s.io/v1. Source: kubernetes pkg/apis/events/v1/conversion.go."""
    renamed = {new: event[old] for old, new in _RENAMED.items() if old in event}
    return {**{name: value for name, value in event.items() if name not in _RENAMED}, **renamed}


def stored_view(event: Doc) -> Doc:
    """Convert an events.k8s.io/v1 Event to core/v1, the stored form."""
    renamed = {old: event[new] for old, new in _RENAMED.items() if new in event}
    taken = set(_RENAMED.values())
    return {**{name: value for name, value in event.items() if name not in taken}, **renamed}


_RENAMED = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
