"""Nodes: they become ready, get lost, come back and are taken away with what runs on them."""

from functools import partial

from gputally_sim.api.refusals import patiently
from gputally_sim.api.registry import Registry
from gputally_sim.api.store import Change, Verb
from gputally_sim.documents import Doc, Key, key_of, labels_of, uid_of
from gputally_sim.instants import SECOND_US
from gputally_sim.node.kubelet import Kubelets
from gputally_sim.node.pods import condition, node_of, with_condition

POD_GC_US = 40 * SECOND_US
"""How long PodGC waits before it believes that a node is gone. Source: kubernetes pkg/controller/podgc."""

_READY_REASONS = {"True": "KubeletReady", "False": "KubeletNotReady", "Unknown": "NodeStatusUnknown"}


class Nodes:
    """The life of nodes, with hooks to interfere; a new node is ready at once unless it says otherwise."""

    def __init__(self, registry: Registry, kubelets: Kubelets) -> None:
        self._registry = registry
        self._kubelets = kubelets
        registry.store.subscribe("nodes", self._observe)

    def mark_ready(self, name: str) -> None:
        """The node is back; what came due on it meanwhile happens now."""
        self._report(name, "True")
        self._kubelets.resume(name)

    def mark_not_ready(self, name: str) -> None:
        """The kubelet reports that the node cannot take pods; those on it go on."""
        self._report(name, "False")

    def mark_unknown(self, name: str) -> None:
        """The kubelet is no longer heard of: until it is back, no pod on the node ends or stops for the API."""
        self._kubelets.unreachable.add(name)
        self._report(name, "Unknown")

    def set_clock(self, name: str, *, ahead_us: int) -> None:
        """Let the node's clock be so much ahead of the API server's from now on, or behind it."""
        self._kubelets.skews_us[name] = ahead_us

    def clock_us(self, name: str, us: int) -> int:
        """What the node's clock shows at `us`."""
        return self._kubelets.clock_us(name, us)

    def cordon(self, name: str, *, unschedulable: bool = True) -> None:
        """Keep new pods away, or let them come again."""
        self._registry.patch("nodes", ("", name), {"spec": {"unschedulable": unschedulable or None}})

    def set_allocatable(self, name: str, quantities: dict[str, str]) -> None:
        """Change what the node offers, as a device plugin does when a device fails."""
        self._registry.patch("nodes", ("", name), {"status": {"allocatable": quantities}}, status=True)

    def delete(self, name: str) -> None:
        """Take the node away; its pods follow when PodGC has noticed."""
        self._registry.delete("nodes", ("", name))

    def register_anew(self, name: str, *, after_us: int) -> None:
        """Take the Node away and let its kubelet, whose pods run on, make another: before PodGC looks, or after.

        Source: kubernetes pkg/kubelet/kubelet_node_status.go, registerWithAPIServer.
        """
        node = self._registry.read("nodes", ("", name)).doc
        told = {
            field: node["status"][field] for field in ("capacity", "allocatable", "nodeInfo") if field in node["status"]
        }
        fresh = {"metadata": {"name": name, "labels": labels_of(node)}, "spec": {}, "status": told}
        self._registry.delete("nodes", ("", name))
        self._registry.agenda.after(after_us, partial(patiently, partial(self._registry.create, "nodes", fresh)))

    def _observe(self, change: Change) -> None:
        name = change.key[1]
        if change.verb is Verb.DELETED:
            self._registry.agenda.after(POD_GC_US, partial(self._collect_pods, name))
        elif change.verb is Verb.ADDED:
            self._registry.agenda.after(0, partial(self._kubelets.resume, name))
            if condition(change.now.doc, "Ready") is None:
                self._registry.agenda.after(0, partial(self._introduce, change.key))

    def _introduce(self, key: Key) -> None:
        if self._registry.store.get("nodes", key):
            self._report(key[1], "True")

    def _report(self, name: str, status: str) -> None:
        node = self._registry.read("nodes", ("", name)).doc
        reason = _READY_REASONS[status]
        now_us = self._registry.agenda.now_us
        at_us = now_us if status == "Unknown" else self._kubelets.clock_us(name, now_us)  # that one is not its own word
        conditions = with_condition(node, at_us, "Ready", status, reason=reason)
        self._registry.patch("nodes", ("", name), {"status": {"conditions": conditions}}, status=True)

    def _collect_pods(self, name: str) -> None:
        if self._registry.store.get("nodes", ("", name)) is None:
            for pod in [doc for doc in self._registry.store.docs("pods") if node_of(doc) == name]:
                self._fail_and_delete(pod)

    def _fail_and_delete(self, pod: Doc) -> None:
        text = "PodGC: node no longer exists"
        now_us = self._registry.agenda.now_us
        if pod["status"]["phase"] not in ("Succeeded", "Failed"):
            conditions = with_condition(pod, now_us, "DisruptionTarget", "True", reason="DeletionByPodGC", message=text)
            status = {"phase": "Failed", "conditions": conditions}
            self._registry.patch("pods", key_of(pod), {"status": status}, status=True)
        self._registry.delete("pods", key_of(pod), grace_seconds=0, uid=uid_of(pod))
