"""The disruption controller: calculates the allowed disruptions of each PodDisruptionBudget."""

import math

from gputally_sim.agenda import Worklist
from gputally_sim.api.registry import Registry
from gputally_sim.api.store import Change, Verb
from gputally_sim.documents import Doc, Key, labels_of, matches
from gputally_sim.node.pods import is_active, is_ready


class Budgets:
    """Updates `status.disruptionsAllowed`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._budgets: Worklist[Key] = Worklist(registry.agenda, self._sync)
        registry.store.subscribe("poddisruptionbudgets", self._observe_budget)
        registry.store.subscribe("pods", self._observe_pod)

    def _observe_budget(self, change: Change) -> None:
        if change.verb is not Verb.DELETED:
            self._budgets.add(change.key)

    def _observe_pod(self, change: Change) -> None:
        for budget in self._registry.store.docs("poddisruptionbudgets"):
            meta = budget["metadata"]
            if meta["namespace"] == change.key[0] and _selects(budget, change.now.doc):
                self._budgets.add((meta["namespace"], meta["name"]))

    def _sync(self, key: Key) -> None:
        stored = self._registry.store.get("poddisruptionbudgets", key)
        if stored is None:
            return
        budget = stored.doc
        pods = [
            pod
            for pod in self._registry.store.docs("pods")
            if pod["metadata"]["namespace"] == key[0] and is_active(pod) and _selects(budget, pod)
        ]
        healthy = sum(map(is_ready, pods))
        needed = desired_healthy(budget["spec"], len(pods))
        status = {
            "expectedPods": len(pods),
            "currentHealthy": healthy,
            "desiredHealthy": needed,
            "disruptionsAllowed": max(0, healthy - needed),
            "observedGeneration": budget["metadata"]["generation"],
        }
        self._registry.patch("poddisruptionbudgets", key, {"status": status}, status=True)


def desired_healthy(spec: Doc, expected: int) -> int:
    """The number of `expected` pods that must stay healthy; percentages are rounded up."""
    if "maxUnavailable" in spec:
        return max(0, expected - _share(spec["maxUnavailable"], expected))
    return _share(spec.get("minAvailable", 1), expected)


def _share(amount: int | str, expected: int) -> int:
    if isinstance(amount, str):
        return math.ceil(int(amount.rstrip("%")) * expected / 100)
    return amount


def _selects(budget: Doc, pod: Doc) -> bool:
    selector = budget["spec"].get("selector", {}).get("matchLabels") or {}
    return matches(selector, labels_of(pod))
