"""A DaemonSet on GPU nodes: one pod per node, each with its own address."""

from collections.abc import Mapping
from functools import partial
from ipaddress import IPv4Address
from itertools import count

from gputally_sim.api.registry import Registry
from gputally_sim.api.store import Change, Verb
from gputally_sim.documents import Doc, uid_of
from gputally_sim.node.gpus import has_gpus
from gputally_sim.scenarios import workloads

ADDRESSES = IPv4Address("127.64.0.0")
"""Pods get the addresses after this one; on Linux all of 127.0.0.0/8 is local without configuration."""


class Daemons:
    """Pods `{name}-...` with these labels; they request no resources and run until their node is deleted."""

    def __init__(self, registry: Registry, *, name: str, namespace: str, labels: Mapping[str, str]) -> None:
        self._registry = registry
        self._name = name
        self._namespace = namespace
        self._labels = dict(labels)
        self._numbers = count(1)
        registry.create("namespaces", workloads.namespace(namespace))
        for node in registry.store.docs("nodes"):
            self._schedule(node)
        registry.store.subscribe("nodes", self._observe)

    def _observe(self, change: Change) -> None:
        if change.verb is Verb.ADDED:
            self._schedule(change.now.doc)

    def _schedule(self, node: Doc) -> None:
        if has_gpus(node):
            self._registry.agenda.after(0, partial(self._run_on, node["metadata"]["name"], uid_of(node)))

    def _run_on(self, node: str, uid: str) -> None:
        found = self._registry.store.get("nodes", ("", node))
        if found is None or uid_of(found.doc) != uid:
            return
        container = {"name": self._name, "image": f"registry.example.org/{self._name}:1"}
        spec = {"nodeName": node, "priorityClassName": "system-node-critical", "containers": [container]}
        meta = {"generateName": f"{self._name}-", "labels": self._labels}
        pod = self._registry.create("pods", {"metadata": meta, "spec": spec}, self._namespace).doc
        address = {"podIP": str(ADDRESSES + next(self._numbers))}
        self._registry.patch("pods", (self._namespace, pod["metadata"]["name"]), {"status": address}, status=True)
