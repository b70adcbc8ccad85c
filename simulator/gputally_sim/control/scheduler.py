"""The scheduler: binds pods that fit, sets conditions on those that do not, and preempts."""

from gputally_sim.api.faults import Faults
from gputally_sim.api.registry import Registry
from gputally_sim.control import recorder
from gputally_sim.control.fit import Misfit, NodeState, PodNeeds, fit_message, free, is_extended, misfit
from gputally_sim.control.preemption import Candidate, budget_of, candidate_on, choose, ineligible
from gputally_sim.control.scheduler_cache import DEFAULT_SCHEDULER, SchedulerCache
from gputally_sim.documents import Doc
from gputally_sim.node.pods import is_terminating, with_condition

CYCLE_US = 10_000
"""Delay from a change to the scheduling cycle."""


class Scheduler:
    """Schedules by priority, then by age. Pods that do not fit are retried when resources are freed."""

    def __init__(self, registry: Registry, faults: Faults) -> None:
        self._registry = registry
        self._faults = faults
        self._active: set[str] = set()
        self._unschedulable: dict[bytes, str] = {}
        self._feasible: dict[bytes, list[NodeState]] = {}
        self._cycle_pending = False
        self._cache = SchedulerCache(registry.store, on_new=self._activate, on_room=self._activate_all)

    def _activate(self, uid: str) -> None:
        self._active.add(uid)
        if not self._cycle_pending:
            self._cycle_pending = True
            self._registry.agenda.after(CYCLE_US, self._cycle)

    def _activate_all(self) -> None:
        for uid in self._cache.pending:
            self._activate(uid)

    def _cycle(self) -> None:
        self._cycle_pending = False
        self._unschedulable.clear()
        self._feasible.clear()
        tried, self._active = self._active, set()
        pending = [pod for uid, pod in self._cache.pending.items() if uid in tried]  # in order of arrival
        for pod in sorted(pending, key=lambda pod: -pod.priority):
            if (message := self._unschedulable.get(pod.alike)) and not pod.nominated_node:
                self._write_condition(pod, message)
            else:
                self._schedule(pod)

    def _schedule(self, pod: PodNeeds) -> None:
        nodes = self._cache.nodes
        if fitting := self._fitting(pod):
            self._registry.bind(pod.key, pick(pod, fitting).name)
        elif not nodes:
            self._mark_unschedulable(pod, "no nodes available to schedule pods")
        else:
            self._preempt(pod, fit_message([each for node in nodes.values() if (each := misfit(pod, node))]))

    def _fitting(self, pod: PodNeeds) -> list[NodeState]:
        """Nodes that fit the pod; nodes that did not fit an equivalent pod in this cycle are skipped."""
        if pod.nominated_node:  # only this pod may use the resources reserved for it
            return [node for node in self._cache.nodes.values() if misfit(pod, node) is None]
        nodes = self._feasible.get(pod.alike, self._cache.nodes.values())
        self._feasible[pod.alike] = [node for node in nodes if misfit(pod, node) is None]
        return self._feasible[pod.alike]

    def _preempt(self, pod: PodNeeds, message: str) -> None:
        if reason := ineligible(pod, self._cache.nodes):
            self._mark_unschedulable(pod, f"{message} preemption: {reason}")
            return
        budgets = [budget_of(doc) for doc in self._registry.store.docs("poddisruptionbudgets")]
        found = [candidate_on(pod, node, budgets) for node in self._cache.nodes.values()]
        candidates = [each for each in found if isinstance(each, Candidate)]
        if not candidates:
            objections = [each for each in found if isinstance(each, Misfit)]
            self._mark_unschedulable(pod, f"{message} preemption: {fit_message(objections)}")
            return
        chosen = choose(candidates)
        preemptor = self._registry.read("pods", pod.key).doc
        for victim in chosen.victims:
            self._evict(victim, preemptor, chosen.node.name)
        self._clear_lower_nominations(pod, chosen.node)
        self._write_condition(pod, message, nominate=chosen.node.name)

    def _mark_unschedulable(self, pod: PodNeeds, message: str) -> None:
        """Mark equivalent pods as unschedulable in this cycle, because free resources only shrink within a cycle."""
        if not pod.nominated_node:
            self._unschedulable[pod.alike] = message
        self._write_condition(pod, message)

    def _evict(self, victim: PodNeeds, preemptor: Doc, node: str) -> None:
        """Set the condition, delete, and write the Event, as in kube-scheduler; terminating pods are skipped."""
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

    def _write_condition(self, pod: PodNeeds, message: str, *, nominate: str = "") -> None:
        doc = self._registry.read("pods", pod.key).doc
        now_us = self._registry.agenda.now_us
        conditions = with_condition(doc, now_us, "PodScheduled", "False", reason="Unschedulable", message=message)
        status: Doc = {"conditions": conditions}
        if nominate:
            status["nominatedNodeName"] = nominate
        self._registry.patch("pods", pod.key, {"status": status}, status=True)


def pick(pod: PodNeeds, fitting: list[NodeState]) -> NodeState:
    """The nominated node if it fits, else the one with the most free devices that the pod requests, then by name."""

    def rank(node: NodeState) -> tuple[bool, int, int, str]:
        left = sum(free(node, resource) for resource in pod.requests if is_extended(resource))
        return node.name != pod.nominated_node, -left, len(node.pods), node.name

    return min(fitting, key=rank)
