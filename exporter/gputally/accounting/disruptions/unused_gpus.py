"""Finds the GPUs that preemptions have freed, and that no pod has taken since."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable

from msgspec import Struct

from gputally.accounting.facts.allocation import held
from gputally.model.disruptions import PREEMPTIONS, Victim
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND

_TOLERANCE_US = US_PER_SECOND
"""API times of bindings have whole seconds: a binding may seem this much earlier than the release before it."""


class Freed(Struct):
    """The GPUs of one victim, of which `left` µGPU are not taken yet.

    Of those that an earlier process observed, some `were_taken`, perhaps by pods that are gone.
    """

    victim_uid: str
    node_uid: str
    tier: str
    released_us: int
    quantity: int
    left: int
    were_taken: bool
    by: dict[str, int] = {}
    """What each pod has taken, by UID."""


class Taker(Struct):
    """A pod on the node, with the µGPU that it may have taken."""

    uid: str
    scheduled_us: int
    quantity: int


class _Node(Struct):
    """What was freed on a node, by victim, and who was bound there. `is_new` until all its pods were looked at."""

    freed: dict[str, Freed] = {}
    takers: dict[str, Taker] = {}
    is_new: bool = True


class UnusedGpus:
    """Unused GPUs by node, for the preemptions that are followed; the GPUs of a node are interchangeable.

    A preemptor takes those of its own victims, then, as any other pod, those that were released first, as in the
    reports of preemptions. What was taken once stays taken. `is_preemptor` says whether the pod with the second
    UID preempted the victim with the first, or is one of the workload that did.
    """

    def __init__(self, on_node: Callable[[str], Iterable[PodRecord]], is_preemptor: Callable[[str, str], bool]) -> None:
        self._on_node = on_node
        self._is_preemptor = is_preemptor
        self.nodes: dict[str, _Node] = {}
        """Nodes with GPUs that a preemption has freed, by name."""

    def follow(self, each: Victim) -> None:
        """A new or changed disruption."""
        known = self.nodes.get(each.node)
        if each.cause not in PREEMPTIONS or each.released_us is None:
            self.forget(each)
        elif known is None or each.victim_uid not in known.freed:
            node = known or self.nodes.setdefault(each.node, _Node())
            node.freed[each.victim_uid] = Freed(
                victim_uid=each.victim_uid,
                node_uid=each.node_uid,
                tier=each.counted[0] if each.counted else each.victim_tier,
                released_us=each.released_us,
                quantity=each.quantity,
                left=each.quantity,
                were_taken=each.reused_us is not None,
            )
            node.is_new = True

    def forget(self, each: Victim) -> None:
        """A disruption is not followed any more, or is none."""
        node = self.nodes.get(each.node)
        freed = node.freed.pop(each.victim_uid, None) if node else None
        if node is None or freed is None:
            return
        if not node.freed:
            del self.nodes[each.node]
            return
        for uid, taken in freed.by.items():
            node.takers[uid].quantity -= taken

    def bound(self, record: PodRecord) -> None:
        """A pod was bound, or has changed; few nodes have unused GPUs."""
        if (node := self.nodes.get(record.node)) and self._is_taker(node, record):
            self._share_out(node)

    def read(self, existing: Callable[[], Collection[str]]) -> Counter[str]:
        """µGPU by the exported tier of the victims, those with 0 too. `existing` returns the UIDs of all nodes."""
        found, nodes = Counter[str](), existing() if self.nodes else ()
        for name, node in self.nodes.items():
            if node.is_new:
                self._add_bound_pods(name, node)
            for each in node.freed.values():
                found[each.tier] += each.left if each.node_uid in nodes else 0
        return found

    def _add_bound_pods(self, name: str, node: _Node) -> None:
        """Look at the pods that were bound before the release was known."""
        for record in self._on_node(name):
            self._is_taker(node, record)
        self._share_out(node)
        for each in node.freed.values():
            if each.were_taken and not each.by:
                each.quantity = each.left = 0  # by pods of an earlier process that are gone
            each.were_taken = False
        node.is_new = False

    def _is_taker(self, node: _Node, record: PodRecord) -> bool:
        """Whether the pod was not known as one that takes GPUs of the node."""
        if record.scheduled_us is None or record.uid in node.takers or not record.terms:
            return False
        quantity = sum(quantity for _, quantity in held(record, record.terms[-1]))
        node.takers[record.uid] = Taker(record.uid, record.scheduled_us, quantity)
        return True

    def _share_out(self, node: _Node) -> None:
        """Each pod takes what was free when it was bound. Bindings and releases are observed in no certain order."""
        for each in node.freed.values():
            each.left, each.by = each.quantity, {}
        order = sorted(node.freed.values(), key=lambda each: (each.released_us, each.victim_uid))
        for pod in sorted(node.takers.values(), key=lambda each: (each.scheduled_us, each.uid)):
            free = [each for each in order if each.left and self._is_before(each, pod)]
            rest = pod.quantity
            for each in sorted(free, key=lambda each: not self._is_preemptor(each.victim_uid, pod.uid)):
                if taken := min(each.left, rest):
                    each.left, each.by[pod.uid] = each.left - taken, taken
                    rest -= taken

    @staticmethod
    def _is_before(each: Freed, pod: Taker) -> bool:
        return each.victim_uid != pod.uid and each.released_us < pod.scheduled_us + _TOLERANCE_US
