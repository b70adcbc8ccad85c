"""The node lifecycle: ready, unreachable, back, and deleted with its pods."""

from functools import partial

from gputally_sim.api.refusals import run_logged
from gputally_sim.api.registry import Registry
from gputally_sim.api.store import Change, Verb
from gputally_sim.documents import Doc, Key, key_of, labels_of, uid_of
from gputally_sim.instants import SECOND_US
from gputally_sim.node.kubelet import Kubelets
from gputally_sim.node.pods import condition, node_of, with_condition

POD_GC_US = 40 * SECOND_US
"""Time that PodGC waits before it deletes the pods of a deleted node. Source: kubernetes pkg/controller/podgc."""

_READY_REASONS = {"True": "KubeletReady", "False": "KubeletNotReady", "Unknown": "NodeStatusUnknown"}


class Nodes:
    """Manages the lifecycle of nodes; a new node becomes ready at once unless it has a Ready condition."""

    def __init__(self, registry: Registry, kubelets: Kubelets) -> None:
        self._registry = registry
        self._kubelets = kubelets
        registry.store.subscribe("nodes", self._observe)

    def mark_ready(self, name: str) -> None:
        """Mark the node ready, and run its deferred actions."""
        self._report(name, "True")
        self._kubelets.resume(name)

    def mark_not_ready(self, name: str) -> None:
        """Mark the node not ready; its pods keep running."""
        self._report(name, "False")

    def mark_unknown(self, name: str) -> None:
        """Make the node unreachable; until it is back, its pods do not end or stop in the API."""
        self._kubelets.unreachable.add(name)
        self._report(name, "Unknown")

    def reboot(self, name: str) -> None:
        """Reboot the node; its kubelet rejects all of its pods."""
        self._kubelets.reboot(name)

    def crash(self, pod: Key) -> None:
        """Let the containers of a running pod fail; its kubelet restarts them."""
        self._kubelets.crash(pod)

    def set_clock(self, name: str, *, ahead_us: int) -> None:
        """Set the offset of the node's clock to the API server's clock."""
        self._kubelets.skews_us[name] = ahead_us

    def clock_us(self, name: str, us: int) -> int:
        """The node's clock at `us`."""
        return self._kubelets.clock_us(name, us)

    def cordon(self, name: str, *, unschedulable: bool = True) -> None:
        """Cordon or uncordon the node."""
        self._registry.patch("nodes", ("", name), {"spec": {"unschedulable": unschedulable or None}})

    def set_allocatable(self, name: str, quantities: dict[str, str]) -> None:
        """Change the allocatable resources, as a device plugin does when a device fails."""
        self._registry.patch("nodes", ("", name), {"status": {"allocatable": quantities}}, status=True)

    def delete(self, name: str) -> None:
        """Delete the node; PodGC deletes its pods later."""
        self._registry.delete("nodes", ("", name))

    def reregister(self, name: str, *, after_us: int) -> None:
        """Delete the Node; its kubelet registers it again after `after_us`, before or after PodGC. Pods keep running.

        Source: kubernetes pkg/kubelet/kubelet_node_status.go, registerWithAPIServer.
        """
        node = self._registry.read("nodes", ("", name)).doc
        reported = {
            field: node["status"][field] for field in ("capacity", "allocatable", "nodeInfo") if field in node["status"]
        }
        fresh = {"metadata": {"name": name, "labels": labels_of(node)}, "spec": {}, "status": reported}
        self._registry.delete("nodes", ("", name))
        self._registry.agenda.after(after_us, partial(run_logged, partial(self._registry.create, "nodes", fresh)))

    def _observe(self, change: Change) -> None:
        name = change.key[1]
        if change.verb is Verb.DELETED:
            self._registry.agenda.after(POD_GC_US, partial(self._collect_pods, name))
        elif change.verb is Verb.ADDED:
            self._registry.agenda.after(0, partial(self._kubelets.resume, name))
            if condition(change.now.doc, "Ready") is None:
                self._registry.agenda.after(0, partial(self._set_initial_ready, change.key))

    def _set_initial_ready(self, key: Key) -> None:
        if self._registry.store.get("nodes", key):
            self._report(key[1], "True")

    def _report(self, name: str, status: str) -> None:
        node = self._registry.read("nodes", ("", name)).doc
        reason = _READY_REASONS[status]
        now_us = self._registry.agenda.now_us
        # the node controller sets Unknown, the kubelet all other values
        at_us = now_us if status == "Unknown" else self._kubelets.clock_us(name, now_us)
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
