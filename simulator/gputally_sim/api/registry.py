"""The API server's verbs; HTTP clients and simulated components write only through this module."""

from gputally_sim.agenda import Agenda
from gputally_sim.api import deletion, refusals
from gputally_sim.api.admission import admit, generation
from gputally_sim.api.resources import BY_PLURAL, Resource
from gputally_sim.api.store import Store, Stored
from gputally_sim.documents import Doc, Key, merge, uid_of
from gputally_sim.instants import rfc3339
from gputally_sim.naming import Naming
from gputally_sim.node.pods import with_condition

_FIXED = frozenset({"uid", "name", "namespace", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"})
_TYPE = frozenset({"kind", "apiVersion"})


class Registry:
    """Every call uses the agenda's current time and raises StatusError where the real server would return one."""

    def __init__(self, store: Store, agenda: Agenda, naming: Naming) -> None:
        self.store = store
        self.agenda = agenda
        self.naming = naming

    def read(self, plural: str, key: Key) -> Stored:
        """The object's current state; 404 if it does not exist."""
        stored = self.store.get(plural, key)
        if stored is None:
            raise refusals.not_found(BY_PLURAL[plural], key[1])
        return stored

    def create(self, plural: str, doc: Doc, namespace: str = "") -> Stored:
        """Admit and store a new object; supports `generateName`."""
        resource = BY_PLURAL[plural]
        if resource.namespaced and self.store.get("namespaces", ("", namespace)) is None:
            raise refusals.not_found(BY_PLURAL["namespaces"], namespace)
        given = _metadata(doc)
        key = (namespace if resource.namespaced else "", self._name(resource, given))
        if self.store.get(plural, key):
            raise refusals.already_exists(resource, key[1])
        rest = {name: value for name, value in doc.items() if name not in _TYPE and name != "metadata"}
        content = {"metadata": self._identity(plural, key, given), **rest}  # metadata first, as in the real server
        return self.store.put(plural, admit(self.store, plural, content, self.agenda.now_us))

    def patch(self, plural: str, key: Key, change: Doc, *, status: bool = False) -> Stored:
        """Apply a JSON merge patch to the object, or only to its status."""
        resource = BY_PLURAL[plural]
        current = self.read(plural, key)
        _check_preconditions(resource, current.doc, _metadata(change))
        allowed = _writable(resource, change, status=status)
        return self._update(plural, key, current, merge(current.doc, allowed))

    def replace(self, plural: str, key: Key, doc: Doc) -> Stored:
        """Replace the object by `doc`; 409 if its resourceVersion is outdated."""
        resource = BY_PLURAL[plural]
        current = self.read(plural, key)
        given = _metadata(doc)
        _check_preconditions(resource, current.doc, given)
        kept = {name: value for name, value in current.doc["metadata"].items() if name in _FIXED | {"generation"}}
        own = {name: value for name, value in given.items() if name not in _FIXED}
        content = {name: value for name, value in doc.items() if name not in _TYPE}
        if resource.has_status:
            content["status"] = current.doc.get("status", {})
        return self._update(plural, key, current, {"metadata": {}} | content | {"metadata": {**own, **kept}})

    def delete(self, plural: str, key: Key, *, grace_seconds: int | None = None, uid: str = "") -> Stored:
        """Request deletion; the object stays during a grace period or while it has finalizers.

        Returns: its state afterwards, or its last state if it was removed.
        """
        resource = BY_PLURAL[plural]
        current = self.read(plural, key)
        if uid and uid != uid_of(current.doc):
            text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {uid_of(current.doc)}"
            raise refusals.conflict(resource, key[1], text)
        graceful = plural == "pods"
        if not graceful and not current.doc["metadata"].get("finalizers"):
            return self.store.remove(plural, key)
        grace = deletion.pod_grace(current.doc, grace_seconds) if graceful else 0
        meta = deletion.requested(current.doc["metadata"], grace, self.agenda.now_us)
        if meta != current.doc["metadata"]:
            current = self.store.put(plural, {**current.doc, "metadata": meta})
        return self.store.remove(plural, key) if deletion.is_due(meta) else current

    def bind(self, key: Key, node: str) -> Stored:
        """Set the pod's node and its PodScheduled condition in one write."""
        pod = self.read("pods", key).doc
        if pod["spec"].get("nodeName"):
            text = f'pod {key[1]} is already assigned to node "{pod["spec"]["nodeName"]}"'
            raise refusals.conflict(BY_PLURAL["pods"], key[1], text)
        status = {name: value for name, value in pod["status"].items() if name != "nominatedNodeName"}
        status["conditions"] = with_condition(pod, self.agenda.now_us, "PodScheduled", "True")
        return self.store.put("pods", {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status})

    def _name(self, resource: Resource, meta: Doc) -> str:
        if name := meta.get("name"):
            return str(name)
        if prefix := meta.get("generateName"):
            return self.naming.generated(prefix)
        text = "metadata.name: Required value: name or generateName is required"
        raise refusals.invalid(resource.kind, "", text)

    def _identity(self, plural: str, key: Key, given: Doc) -> Doc:
        namespace = {"namespace": key[0]} if key[0] else {}
        own = {name: value for name, value in given.items() if name not in _FIXED}
        return {
            **own,
            **namespace,
            **generation(plural),
            "name": key[1],
            "uid": self.naming.uid(plural, key),
            "creationTimestamp": rfc3339(self.agenda.now_us),
        }

    def _update(self, plural: str, key: Key, current: Stored, doc: Doc) -> Stored:
        if doc == current.doc:
            return current  # like the real server: no write, no watch event
        meta = doc["metadata"]
        if "deletionTimestamp" in meta and deletion.is_due(meta):
            return self.store.remove(plural, key)
        if "generation" in meta and doc.get("spec") != current.doc.get("spec"):
            doc = {**doc, "metadata": {**meta, "generation": meta["generation"] + 1}}
        return self.store.put(plural, doc)


def _metadata(doc: Doc) -> Doc:
    meta = doc.get("metadata") or {}
    if not isinstance(meta, dict):
        raise refusals.bad_request("metadata must be an object")
    return meta


def _check_preconditions(resource: Resource, doc: Doc, given: Doc) -> None:
    for field in ("resourceVersion", "uid"):
        if given.get(field) not in (None, "", doc["metadata"][field]):
            text = "the object has been modified; please apply your changes to the latest version and try again"
            raise refusals.conflict(resource, doc["metadata"]["name"], text)


def _writable(resource: Resource, change: Doc, *, status: bool) -> Doc:
    """The writable part of a patch: only the status for the status subresource, else everything but the status."""
    meta = {name: value for name, value in _metadata(change).items() if name not in _FIXED | {"resourceVersion"}}
    if status:
        return {"status": change.get("status", {}), "metadata": meta}
    own = {name: value for name, value in change.items() if name not in _TYPE}
    if resource.has_status:
        own.pop("status", None)
    return {**own, "metadata": meta}
