"""Deployments and ReplicaSets: keeps the number of replicas, and scales.

Template changes are ignored: each Deployment has a single ReplicaSet.
"""

from hashlib import blake2b

import msgspec

from gputally_sim.agenda import Worklist
from gputally_sim.api.registry import Registry
from gputally_sim.api.store import Change
from gputally_sim.control.owners import Owners, Retries, create_pods, owner_reference
from gputally_sim.documents import Doc, Key, controller_of, merge, uid_of
from gputally_sim.naming import suffix_of
from gputally_sim.node.pods import is_active, is_ready, node_of

_HASH_LENGTH = 10


class Deployments:
    """The Deployment and ReplicaSet controllers."""

    def __init__(self, registry: Registry, owners: Owners) -> None:
        self._registry = registry
        self._owners = owners
        self._retries = Retries()
        self._deployments: Worklist[Key] = Worklist(registry.agenda, self._sync_deployment)
        self._sets: Worklist[Key] = Worklist(registry.agenda, self._sync_set)
        registry.store.subscribe("deployments", lambda change: self._deployments.add(change.key))
        registry.store.subscribe("replicasets", self._observe_set)
        registry.store.subscribe("pods", self._observe_pod)

    def _observe_set(self, change: Change) -> None:
        self._sets.add(change.key)
        owner = controller_of(change.now.doc)
        if owner and owner["kind"] == "Deployment":
            self._deployments.add((change.key[0], owner["name"]))

    def _observe_pod(self, change: Change) -> None:
        owner = controller_of(change.now.doc)
        if owner and owner["kind"] == "ReplicaSet":
            self._sets.add((change.key[0], owner["name"]))

    def _sync_deployment(self, key: Key) -> None:
        stored = self._registry.store.get("deployments", key)
        if stored is None:
            return
        deployment = stored.doc
        sets = self._owners.owned("replicasets", uid_of(deployment))
        if not sets:
            self._registry.create("replicasets", replica_set(deployment), key[0])
            return
        wanted = {"spec": {"replicas": deployment["spec"]["replicas"]}}
        self._registry.patch("replicasets", (key[0], sets[0]["metadata"]["name"]), wanted)
        counts = {name: sets[0].get("status", {}).get(name, 0) for name in ("replicas", "readyReplicas")}
        self._write_status("deployments", deployment, counts)

    def _sync_set(self, key: Key) -> None:
        stored = self._registry.store.get("replicasets", key)
        if stored is None:
            return
        owner = stored.doc
        active = [pod for pod in self._owners.owned("pods", uid_of(owner)) if is_active(pod)]
        missing = owner["spec"]["replicas"] - len(active)
        if create_pods(self._registry, key[0], pod_of(owner), missing):
            self._retries.forget(key)
        else:
            self._sets.add_after(self._retries.next_us(key), key)
        for pod in deletion_order(active)[: max(0, -missing)]:
            self._registry.delete("pods", (key[0], pod["metadata"]["name"]))
        ready = sum(is_ready(pod) for pod in active)
        self._write_status("replicasets", owner, {"replicas": len(active), "readyReplicas": ready})

    def _write_status(self, plural: str, owner: Doc, counts: dict[str, int]) -> None:
        status = {
            **counts,
            "availableReplicas": counts["readyReplicas"],
            "observedGeneration": owner["metadata"]["generation"],
        }
        key = owner["metadata"]["namespace"], owner["metadata"]["name"]
        self._registry.patch(plural, key, {"status": status}, status=True)


def replica_set(deployment: Doc) -> Doc:
    """The ReplicaSet of a Deployment, with the template hash in its name."""
    spec = deployment["spec"]
    digest = blake2b(msgspec.json.encode(spec["template"]), digest_size=_HASH_LENGTH).digest()
    template_hash = suffix_of(digest, _HASH_LENGTH)
    label = {"pod-template-hash": template_hash}
    template: Doc = merge(spec["template"], {"metadata": {"labels": label}})
    return {
        "metadata": {
            "name": f"{deployment['metadata']['name']}-{template_hash}",
            "labels": template["metadata"]["labels"],
            "annotations": {"deployment.kubernetes.io/revision": "1"},
            "ownerReferences": [owner_reference(deployment, "Deployment", "apps/v1")],
        },
        "spec": {
            "replicas": spec["replicas"],
            "selector": merge(spec.get("selector", {}), {"matchLabels": label}),
            "template": template,
        },
    }


def pod_of(owner: Doc) -> Doc:
    """A pod from a ReplicaSet's template."""
    template = owner["spec"]["template"]
    meta = {
        **template.get("metadata", {}),
        "generateName": f"{owner['metadata']['name']}-",
        "ownerReferences": [owner_reference(owner, "ReplicaSet", "apps/v1")],
    }
    return {"metadata": meta, "spec": template["spec"]}


def deletion_order(pods: list[Doc]) -> list[Doc]:
    """Deletion order: unbound, not ready, youngest first. Source: kubernetes pkg/controller ActivePodsWithRanks."""
    youngest_first = sorted(pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], uid_of(pod)), reverse=True)
    return sorted(youngest_first, key=lambda pod: (bool(node_of(pod)), is_ready(pod)))
