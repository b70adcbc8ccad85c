"""The scheduler's loop: binds what fits, says why the rest does not, and preempts where that helps."""

from gputally_sim.api.faults import Faults
from gputally_sim.api.registry import Registry
from gputally_sim.control import recorder
from gputally_sim.control.fit import Misfit, NodeState, PodNeeds, fit_message, free, misfit
from gputally_sim.control.preemption import Candidate, budget_of, candidate_on, choose, ineligible
from gputally_sim.control.scheduler_cache import DEFAULT_SCHEDULER, SchedulerCache
from gputally_sim.documents import Doc
from gputally_sim.node.pods import is_terminating, with_condition

CYCLE_US = 10_000
"""From a change until the scheduler has looked at what waits."""


class Scheduler:
    """Higher priority first, then the older pod. What does not fit is tried again when something has given way."""

    def __init__(self, registry: Registry, faults: Faults) -> None:
        self._registry = registry
        self._faults = faults
        self._active: set[str] = set()
        self._hopeless: dict[bytes, str] = {}
        self._open: dict[bytes, list[NodeState]] = {}
        self._due = False
        self._board = SchedulerCache(registry.store, on_new=self._activate, on_room=self._activate_all)

    def _activate(self, uid: str) -> None:
        self._active.add(uid)
        if not self._due:
            self._due = True
            self._registry.agenda.after(CYCLE_US, self._cycle)

    def _activate_all(self) -> None:
        for uid in self._board.waiting:
            self._activate(uid)

    def _cycle(self) -> None:
        self._due = False
        self._hopeless.clear()
        self._open.clear()
        tried, self._active = self._active, set()
        waiting = [pod for uid, pod in self._board.waiting.items() if uid in tried]  # in order of arrival
        for pod in sorted(waiting, key=lambda pod: -pod.priority):
            if (message := self._hopeless.get(pod.alike)) and not pod.nominated_node:
                self._wait(pod, message)
            else:
                self._schedule(pod)

    def _schedule(self, pod: PodNeeds) -> None:
        nodes = self._board.nodes
        if fitting := self._fitting(pod):
            self._registry.bind(pod.key, pick(pod, fitting).name)
        elif not nodes:
            self._give_up(pod, "no nodes available to schedule pods")
        else:
            self._preempt(pod, fit_message([each for node in nodes.values() if (each := misfit(pod, node))]))

    def _fitting(self, pod: PodNeeds) -> list[NodeState]:
        """Nodes that take the pod; those that took none like it earlier in the cycle are not asked again."""
        if pod.nominated_node:  # it alone may use the room kept for it
            return [node for node in self._board.nodes.values() if misfit(pod, node) is None]
        asked = self._open.get(pod.alike, self._board.nodes.values())
        self._open[pod.alike] = [node for node in asked if misfit(pod, node) is None]
        return self._open[pod.alike]

    def _preempt(self, pod: PodNeeds, message: str) -> None:
        if excuse := ineligible(pod, self._board.nodes):
            self._give_up(pod, f"{message} preemption: {excuse}")
            return
        budgets = [budget_of(doc) for doc in self._registry.store.docs("poddisruptionbudgets")]
        found = [candidate_on(pod, node, budgets) for node in self._board.nodes.values()]
        candidates = [each for each in found if isinstance(each, Candidate)]
        if not candidates:
            objections = [each for each in found if isinstance(each, Misfit)]
            self._give_up(pod, f"{message} preemption: {fit_message(objections)}")
            return
        chosen = choose(candidates)
        preemptor = self._registry.read("pods", pod.key).doc
        for victim in chosen.victims:
            self._evict(victim, preemptor, chosen.node.name)
        self._clear_lower_nominations(pod, chosen.node)
        self._wait(pod, message, nominate=chosen.node.name)

    def _give_up(self, pod: PodNeeds, message: str) -> None:
        """Nor will another pod like this one fit before the next cycle, as within a cycle room only shrinks."""
        if not pod.nominated_node:
            self._hopeless[pod.alike] = message
        self._wait(pod, message)

    def _evict(self, victim: PodNeeds, preemptor: Doc, node: str) -> None:
        """Condition, deletion, Event, as kube-scheduler's executor does it. A pod already leaving is left alone."""
        doc = self._registry.read("pods", victim.key).doc
        if is_terminating(doc):
            return
        text = f"{DEFAULT_SCHEDULER}: preempting to accommodate a higher priority pod"
        now_us = self._registry.agenda.now_us
        conditions = with_condition(
            doc, now_us, "DisruptionTarget", "True", reason="PreemptionByScheduler", message=text
        )
        self._registry.patch("pods", victim.key, {"status": {"conditions": conditions}}, status=True)
        self._registry.delete("pods", victim.key)
        if not self._faults.lose_events:
            recorder.preempted(self._registry, doc, preemptor, node)

    def _clear_lower_nominations(self, pod: PodNeeds, node: NodeState) -> None:
        for other in [each for each in node.nominated.values() if each.priority < pod.priority]:
            self._registry.patch("pods", other.key, {"status": {"nominatedNodeName": None}}, status=True)
            self._activate(other.uid)

    def _wait(self, pod: PodNeeds, message: str, *, nominate: str = "") -> None:
        doc = self._registry.read("pods", pod.key).doc
        now_us = self._registry.agenda.now_us
        conditions = with_condition(doc, now_us, "PodScheduled", "False", reason="Unschedulable", message=message)
        status: Doc = {"conditions": conditions}
        if nominate:
            status["nominatedNodeName"] = nominate
        self._registry.patch("pods", pod.key, {"status": status}, status=True)


def pick(pod: PodNeeds, fitting: list[NodeState]) -> NodeState:
    """The nominated node if it is among them, else the one with most left of what the pod asks for, then by name."""

    def rank(node: NodeState) -> tuple[bool, int, int, str]:
        left = sum(free(node, resource) for resource in pod.requests)
        return node.name != pod.nominated_node, -left, len(node.pods), node.name

    return min(fitting, key=rank)
