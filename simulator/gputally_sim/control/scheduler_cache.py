"""What the scheduler knows: nodes with the pods on them, and the pods that wait. Kept up to date by listening."""

from collections.abc import Callable

from gputally_sim.api.store import Change, Store, Verb
from gputally_sim.control.fit import NodeState, PodNeeds, needs_of
from gputally_sim.documents import Doc
from gputally_sim.node.pods import is_terminal

DEFAULT_SCHEDULER = "default-scheduler"


class SchedulerCache:
    """`on_new(uid)` is called for a pod that may be tried, `on_room()` when others may fit that did not."""

    def __init__(self, store: Store, *, on_new: Callable[[str], None], on_room: Callable[[], None]) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.waiting: dict[str, PodNeeds] = {}
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
            self._lift(former)
        pod = needs_of(doc, former)
        if change.verb is Verb.DELETED or is_terminal(doc):
            self.waiting.pop(pod.uid, None)
        else:
            self._pods[pod.uid] = pod
            self._place(pod, former, ours=_is_ours(doc))
        if former and _gives_way(former, self._pods.get(pod.uid)):
            self._on_room()

    def _lift(self, former: PodNeeds) -> None:
        for name in (former.node, former.nominated_node):
            if node := self.nodes.get(name):
                node.lift(former.uid)

    def _place(self, pod: PodNeeds, former: PodNeeds | None, *, ours: bool) -> None:
        if pod.node or not ours:
            self.waiting.pop(pod.uid, None)
        else:
            self.waiting[pod.uid] = pod
        if node := self.nodes.get(pod.node):
            node.place(pod)
        elif node := self.nodes.get(pod.nominated_node):
            node.nominated[pod.uid] = pod
        if pod.uid in self.waiting and (former is None or former.spec != pod.spec):
            self._on_new(pod.uid)


def _gives_way(former: PodNeeds, pod: PodNeeds | None) -> bool:
    """Whether a node has more room now: the pod left it, or does not want it any longer."""
    claimed = {former.node, former.nominated_node} - {""}
    return not claimed <= ({pod.node, pod.nominated_node} if pod else set())


def _is_ours(pod: Doc) -> bool:
    """Whether the pod waits for this scheduler: for no other one, no gate, and not for its own end."""
    spec = pod["spec"]
    ours = spec.get("schedulerName", DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
    return ours and not spec.get("schedulingGates") and "deletionTimestamp" not in pod["metadata"]
