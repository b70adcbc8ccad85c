"""The scheduler's cache of nodes with their pods, and of pending pods; updated by store events."""

from collections.abc import Callable

from gputally_sim.api.store import Change, Store, Verb
from gputally_sim.control.fit import NodeState, PodNeeds, needs_of
from gputally_sim.documents import Doc
from gputally_sim.node.pods import is_terminal

DEFAULT_SCHEDULER = "default-scheduler"


class SchedulerCache:
    """Calls `on_new(uid)` for a new pending pod, and `on_room()` when pods that did not fit may fit now."""

    def __init__(self, store: Store, *, on_new: Callable[[str], None], on_room: Callable[[], None]) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.pending: dict[str, PodNeeds] = {}
        self._pods: dict[str, PodNeeds] = {}
        self._on_new = on_new
        self._on_room = on_room
        store.subscribe("nodes", self._observe_node)
        store.subscribe("pods", self._observe_pod)

    def _observe_node(self, change: Change) -> None:
        name = change.key[1]
        if change.verb is Verb.DELETED:
            self.nodes.pop(name, None)
        elif name in self.nodes:
            self.nodes[name].update(change.now.doc)
        else:
            pods = {uid: pod for uid, pod in self._pods.items() if pod.node == name}
            self.nodes[name] = NodeState(change.now.doc, pods)
        self._on_room()

    def _observe_pod(self, change: Change) -> None:
        doc = change.now.doc
        former = self._pods.pop(doc["metadata"]["uid"], None)
        if former:
            self._remove(former)
        pod = needs_of(doc, former)
        if change.verb is Verb.DELETED or is_terminal(doc):
            self.pending.pop(pod.uid, None)
        else:
            self._pods[pod.uid] = pod
            self._place(pod, former, schedulable=_is_schedulable(doc))
        if former and _frees_room(former, self._pods.get(pod.uid)):
            self._on_room()

    def _remove(self, former: PodNeeds) -> None:
        for name in (former.node, former.nominated_node):
            if node := self.nodes.get(name):
                node.remove(former.uid)

    def _place(self, pod: PodNeeds, former: PodNeeds | None, *, schedulable: bool) -> None:
        if pod.node or not schedulable:
            self.pending.pop(pod.uid, None)
        else:
            self.pending[pod.uid] = pod
        if node := self.nodes.get(pod.node):
            node.place(pod)
        elif node := self.nodes.get(pod.nominated_node):
            node.nominated[pod.uid] = pod
        if pod.uid in self.pending and (former is None or former.spec != pod.spec):
            self._on_new(pod.uid)


def _frees_room(former: PodNeeds, pod: PodNeeds | None) -> bool:
    """Whether a node has more room now, because the pod left it or is no longer nominated to it."""
    claimed = {former.node, former.nominated_node} - {""}
    return not claimed <= ({pod.node, pod.nominated_node} if pod else set())


def _is_schedulable(pod: Doc) -> bool:
    """Whether the pod is for this scheduler, not gated and not terminating."""
    spec = pod["spec"]
    schedulable = spec.get("schedulerName", DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
    return schedulable and not spec.get("schedulingGates") and "deletionTimestamp" not in pod["metadata"]
