"""The devices of all simulated nodes: allocated to pods on binding, and released when their containers end."""

from gputally_sim.api.registry import Registry
from gputally_sim.api.store import Change, Verb
from gputally_sim.documents import Doc, uid_of
from gputally_sim.node.device_leases import lease_of
from gputally_sim.node.gpus import GpuNode, has_gpus
from gputally_sim.node.pods import is_terminal, node_of


class Devices:
    """Optional device manager; it observes existing objects and all later changes.

    `seed` determines the utilization of pods without annotation. A recreated node of the same name has the same GPUs,
    all free.
    """

    def __init__(self, registry: Registry, *, seed: int) -> None:
        self.nodes: dict[str, GpuNode] = {}
        """Nodes with GPUs by name."""
        self._registry = registry
        self._seed = seed
        self._homes: dict[str, str] = {}
        for doc in registry.store.docs("nodes"):
            self._add_node(doc)
        registry.store.subscribe("nodes", self._observe_node)
        registry.store.subscribe("pods", self._observe_pod)

    def _observe_node(self, change: Change) -> None:
        name = change.key[1]
        if change.verb is Verb.DELETED:
            self.nodes.pop(name, None)
            self._homes = {uid: home for uid, home in self._homes.items() if home != name}
        elif name not in self.nodes:
            self._add_node(change.now.doc)

    def _add_node(self, node: Doc) -> None:
        """Add a node, with the pods bound to its name."""
        if has_gpus(node):
            joined = self.nodes[node["metadata"]["name"]] = GpuNode(node, self._registry.agenda.now_us)
            for pod in self._registry.store.docs("pods"):
                if node_of(pod) == joined.name:
                    self._observe_bound(pod)

    def _observe_pod(self, change: Change) -> None:
        if change.verb is Verb.DELETED:
            self._release(uid_of(change.now.doc))
        elif node_of(change.now.doc):
            self._observe_bound(change.now.doc)

    def _observe_bound(self, pod: Doc) -> None:
        uid, now_us = uid_of(pod), self._registry.agenda.now_us
        node = self.nodes.get(node_of(pod))
        if is_terminal(pod):
            self._release(uid)
        elif node:
            if uid not in self._homes:
                self._homes[uid] = node.name
                node.bind(lease_of(pod, node.resource, self._seed), now_us)
            if pod["status"].get("phase") == "Running":
                node.started(uid, now_us)

    def _release(self, uid: str) -> None:
        node = self.nodes.get(self._homes.pop(uid, ""))
        if node:
            node.release(uid, self._registry.agenda.now_us)
