"""Ownership index and garbage collection of dependents."""

from collections import defaultdict
from contextlib import suppress
from functools import partial

from gputally_sim.api.refusals import StatusError
from gputally_sim.api.registry import Registry
from gputally_sim.api.store import Change, Verb
from gputally_sim.control.recorder import failed_create
from gputally_sim.documents import Doc, Key, uid_of
from gputally_sim.instants import SECOND_US

_OWNED = ("pods", "replicasets", "jobs")
_RETRY_US = 10 * SECOND_US
_MOST_RETRY_US = 1000 * SECOND_US
_OWNERS = ("deployments", "replicasets", "jobs", "cronjobs")


class Retries:
    """How long controllers wait before they create rejected pods again: twice as long each time.

    Source: k8s.io/client-go util/workqueue/default_rate_limiters.go.
    """

    def __init__(self) -> None:
        self._rejected: dict[Key, int] = {}

    def next_us(self, owner: Key) -> int:
        """The delay after another rejection."""
        count = self._rejected[owner] = self._rejected.get(owner, 0) + 1
        return min(_RETRY_US << min(count - 1, 10), _MOST_RETRY_US)

    def forget(self, owner: Key) -> None:
        """No pod is missing any more."""
        self._rejected.pop(owner, None)


class Owners:
    """Indexes dependents by owner uid, and deletes them in the background after their owner."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._owned: defaultdict[tuple[str, str], dict[Key, Doc]] = defaultdict(dict)
        for plural in _OWNED:
            registry.store.subscribe(plural, self._observe_owned)
        for plural in _OWNERS:
            registry.store.subscribe(plural, self._observe_owner)
        registry.store.subscribe("namespaces", self._observe_namespace)

    def owned(self, plural: str, owner: str) -> list[Doc]:
        """Objects of a resource owned by the uid `owner`, in creation order."""
        return list(self._owned.get((plural, owner), {}).values())

    def _observe_owned(self, change: Change) -> None:
        for reference in change.now.doc["metadata"].get("ownerReferences") or ():
            owned = self._owned[change.plural, reference["uid"]]
            if change.verb is Verb.DELETED:
                owned.pop(change.key, None)
            else:
                owned[change.key] = change.now.doc
            if not owned:
                del self._owned[change.plural, reference["uid"]]

    def _observe_owner(self, change: Change) -> None:
        if change.verb is Verb.DELETED:
            self._registry.agenda.after(0, partial(self._delete_owned, uid_of(change.now.doc)))

    def _delete_owned(self, owner: str) -> None:
        for plural in _OWNED:
            for doc in self.owned(plural, owner):
                release(self._registry, plural, doc)

    def _observe_namespace(self, change: Change) -> None:
        if change.verb is Verb.DELETED:
            self._registry.agenda.after(0, partial(self._delete_contents, change.key[1]))

    def _delete_contents(self, namespace: str) -> None:
        for plural in (*_OWNERS, "pods", "poddisruptionbudgets", "resourcequotas", "events"):
            for doc in self._registry.store.docs(plural):
                if doc["metadata"].get("namespace") == namespace:
                    release(self._registry, plural, doc)


def release(registry: Registry, plural: str, doc: Doc) -> None:
    """Remove an object's finalizers and delete it."""
    key = doc["metadata"].get("namespace", ""), doc["metadata"]["name"]
    if doc["metadata"].get("finalizers"):
        registry.patch(plural, key, {"metadata": {"finalizers": None}})
    stored = registry.store.get(plural, key)
    if stored and uid_of(stored.doc) == uid_of(doc):
        registry.delete(plural, key)


def create_pods(registry: Registry, namespace: str, pod: Doc, count: int) -> bool:
    """Create `count` pods like `pod`; if the API server rejects one, write an Event of their owner and return False."""
    try:
        for _ in range(count):
            registry.create("pods", pod, namespace)
    except StatusError as error:
        with suppress(StatusError):  # the namespace may be gone
            failed_create(registry, namespace, pod["metadata"]["ownerReferences"][0], error.message)
        return False
    return True


def owner_reference(owner: Doc, kind: str, api_version: str) -> Doc:
    """An owner reference to the controller `owner`."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": owner["metadata"]["name"],
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }
