"""A naive reference for the accounting: what its contract says, second by second, in loops over plain documents.

It shares no code with the product. Everything happens at whole seconds since midnight, so that looking at each second
once is exact. What is told of a cluster is a log; the last word on a pod comes from all of its forms together.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from tests.told import Json, Prices, Told
from tests.true_ends import Interval, asked, held_until, lost_since, own_end, rejects, seconds, starts
from tests.true_nodes import Node, by_uid, is_gpu, nodes_of, weight

ACCEPTANCE = 15
"""How long (s) a bound pod holds its GPUs here without its kubelet's word."""


@dataclass
class Truth:
    """GPU-seconds in millionths of a GPU, by labels, and cost in the currency's units."""

    allocated: Counter[tuple[str, str, str, str]]
    cost: dict[tuple[str, str, str, str], Fraction]
    unpriced: Counter[tuple[str, str, str]]
    capacity: Counter[tuple[str, str]]
    physical: int


def account(log: Iterable[Told], *, opened: int, until: int, prices: Prices) -> Truth:
    """The truth about [opened, until), as far as `log` tells it."""
    log = list(log)
    nodes = nodes_of(log)
    pods = [Pod(told, nodes) for told in by_uid(log, "pod")]
    for node in nodes:
        node.last(pods)
    truth = Truth(Counter(), {}, Counter(), Counter(), 0)
    for second in range(opened, until):
        assignment = [pod for pod in pods if pod.holds(second) and pod.quantity(second)]
        for pod in assignment:
            _bill(truth, pod, second, prices)
        for node in nodes:
            held = sum(pod.quantity(second) for pod in assignment if pod.on(second) is node)
            truth.physical += node.physical(second)
            if held or node.exists(second):
                truth.capacity.update(
                    {(node.model(second), state): n for state, n in node.divided(second, held).items()}
                )
        homeless = sum(pod.quantity(second) for pod in assignment if pod.node is None)
        truth.capacity.update({("unknown", state): homeless for state in ("allocated", "overcommitted")})
    return truth


def _bill(truth: Truth, pod: "Pod", second: int, prices: Prices) -> None:
    labels = (pod.tier, pod.tenant(second), pod.model(second), pod.state(second))
    quantity = pod.quantity(second)
    truth.allocated[labels] += quantity
    price = prices.of(pod.model(second), pod.tier, second, labels=pod.carried(prices.labels, second))
    if price is None:
        truth.unpriced[labels[:3]] += quantity
    else:
        truth.cost[labels] = truth.cost.get(labels, Fraction(0)) + price * Fraction(quantity, 10**6) / 3600


class Pod:
    """One pod, by all that was told of it."""

    def __init__(self, told: Sequence[Told], nodes: list[Node]) -> None:
        self.forms = [t.manifest for t in told if t.event != "vanished"]
        self.told = told
        self.tier: str = self.forms[0]["spec"].get("priorityClassName") or "none"
        self.accepted = any(map(_is_accepted, self.forms))
        self.bound = min((b for form in self.forms if (b := self._bound(form)) is not None), default=None)
        self.off = self._clock()
        self.started = min((at - self.off for at in _starts(self.forms)), default=None)
        self.asked = min((asked(form) for form in self.forms if "deletionTimestamp" in form["metadata"]), default=None)
        self.node = self._placed(nodes)
        self.replaced = self._replaced(nodes)
        self.end = self._ended()
        amounts: Json = self.forms[0]["spec"]["containers"][0]["resources"]["requests"]
        self.amounts = {name: self._limited(name, int(amount)) for name, amount in amounts.items() if is_gpu(name)}

    def quantity(self, second: int) -> int:
        """Millionths of a GPU that it has then."""
        node = self.on(second) or self.node
        weights = {name: node.weight(name, second) if node else weight(name) for name in self.amounts}
        return sum(amount * weights[name] for name, amount in self.amounts.items())

    def model(self, second: int) -> str:
        """Of which GPUs."""
        node = self.on(second) or self.node
        return node.model(second) if node else "unknown"

    def carried(self, keys: Iterable[str], second: int) -> list[str]:
        """Those of the labels that its node carries."""
        node = self.on(second) or self.node
        return [key for key in keys if node and node.label(key, second) is not None]

    def holds(self, second: int) -> bool:
        """Whether it has its GPUs."""
        if self.bound is None or self.never_held:
            return False
        return self.bound <= second and (self.end is None or second < self.end)

    def on(self, second: int) -> Node | None:
        """The incarnation of its node that it has GPUs of; None too while it has none."""
        if self.node is None or not self.holds(second):
            return None
        lineage = self.node.lineage()
        return [node for node in lineage if node.created <= second or node is lineage[0]][-1]

    def state(self, second: int) -> str:
        """What it does with them."""
        if self.asked is not None and self.asked <= second:
            return "terminating"
        return "running" if self.started is not None and self.started <= second else "starting"

    def tenant(self, second: int) -> str:
        """As labelled in the last form known then, of those that show it bound, or were told after one that does."""
        told = [t for t in self.told if t.event != "vanished"]
        bound = told[next(i for i, t in enumerate(told) if self._is_bound(t.manifest)) :]
        form = [t for t in bound if t.at <= second or t is bound[0]][-1].manifest
        tenant: str = form["metadata"]["labels"].get("team") or form["metadata"]["namespace"]
        return tenant

    def _clock(self) -> int:
        """By how much its node's clock is ahead, if its kubelet took it up at its binding; 2 s pass as none."""
        told = [t for t in self.told if "startTime" in t.manifest["status"] and t.event != "vanished"]
        if self.bound is None or not told:
            return 0
        taken_up = min(seconds(t.manifest["status"]["startTime"]) for t in told)
        is_off = taken_up - self.bound < -2 or any(taken_up - t.at > 2 for t in told)
        return taken_up - self.bound if is_off else 0

    def _bound(self, form: Json) -> int | None:
        """When PodScheduled became True; without it its creator bound it, which only its kubelet's word makes true.

        A scheduler may say that the binding failed when it did not: then it was bound when its kubelet took it up.
        """
        for condition in form["status"]["conditions"]:
            if (condition["type"], condition["status"]) == ("PodScheduled", "True"):
                return seconds(condition["lastTransitionTime"])
        if not (form["spec"].get("nodeName") and self.accepted):
            return None
        if all(each["type"] != "PodScheduled" for each in form["status"]["conditions"]):
            return None if _is_cleared(form) else seconds(form["metadata"]["creationTimestamp"])
        return seconds(form["status"]["startTime"]) if "startTime" in form["status"] else None

    def _is_bound(self, form: Json) -> bool:
        """Whether somebody other than its creator says so."""
        conditions = {(each["type"], each["status"]) for each in form["status"]["conditions"]}
        return bool(form["spec"].get("nodeName")) and (("PodScheduled", "True") in conditions or _is_accepted(form))

    def _limited(self, resource: str, amount: int) -> int:
        """What it asks for, or the most that its node was told to have offered as long as the pod existed."""
        if self.node is None:
            return amount
        last = max(t.at for t in self.told if t.event != "seen") if self._is_gone() else None
        seen = [t for node in self.node.lineage() for t in node.seen]
        told = [t.manifest["status"] for t in seen if last is None or t.at <= last]
        return min(amount, max(int(s[k].get(resource, 0)) for s in told for k in ("capacity", "allocatable")))

    def _told_of_until(self) -> float:
        """When it is known to have ended for good: what its node went on as after that is not looked at."""
        return max((t.at for t in self.told if t.event != "seen"), default=inf)

    def _is_gone(self) -> bool:
        return any(t.event != "seen" for t in self.told)

    def _placed(self, nodes: list[Node]) -> Node | None:
        """On the last incarnation of the node's name that may have existed when it was bound."""
        if self.bound is None:
            return None
        named = [node for node in nodes if node.name == self._node_name() and node.created <= self.bound]
        fitting = [node for node in named if node.gone is None or self.bound < node.gone[1]]
        return max(fitting, key=lambda node: node.created, default=None)

    def _replaced(self, nodes: list[Node]) -> int | None:
        """When another node of the name came; what was bound before it was bound to one nobody told of."""
        if self.bound is None:
            return None
        births = (node.created for node in nodes if node.name == self._node_name() and node.created > self.bound)
        return min(births, default=None)

    def _node_name(self) -> str:
        return next(str(form["spec"]["nodeName"]) for form in self.forms if form["spec"].get("nodeName"))

    @property
    def never_held(self) -> bool:
        """Whether the kubelet refused it, and had never accepted it."""
        return not self.accepted and any(map(rejects, self.forms))

    @property
    def is_preempted(self) -> bool:
        """Whether it was bound, and marked by a scheduler while, or before, it was deleted."""
        so_far = (self.told[: i + 1] for i in range(len(self.told)))
        return self.bound is not None and any(_is_marked(told[-1]) and _is_deleted(told) for told in so_far)

    def _ended(self) -> int | None:
        """As its forms and its node tell, but no later than a pod that nobody accepted holds its GPUs."""
        ends = [self._told_end()]
        if not self.accepted and self.bound is not None:
            ends.append(self.bound + ACCEPTANCE)
        return min((end for end in ends if end is not None), default=None)

    def _told_end(self) -> int | None:
        """As its forms and its node tell together: the earliest moment at which it is not known to be there."""
        own = own_end(self.told)
        if own and own[0] == "finished":
            return max(own[1][0] - self.off, held_until(self.told), self.bound or 0)
        end = own[1] if own else None
        out = self.node.out(10**4, self._told_of_until()) if self.node else set()
        if own and own[0] == "terminal":
            end = lost_since(own[1], out), own[1][1]
        gone = self._node_gone()
        if gone and (end is None or end[1] > gone[0]):
            gone = lost_since(gone, out), gone[1]
            end = (min(end[0], gone[0]), min(end[1], gone[1])) if end else gone
        return min(end[1], max(end[0], self.bound or 0, self.started or 0)) if end else None

    def _node_gone(self) -> Interval | None:
        if self.node:
            until = self._told_of_until()
            return self.node.lineage(until)[-1].gone_as_told(until)
        return (self.replaced, self.replaced) if self.replaced is not None else None


def _is_accepted(form: Json) -> bool:
    """Whether the kubelet tells that it took the pod up: it dates what it refuses, too, but has no containers of it."""
    status = form["status"]
    containers = [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]
    if status["phase"] in ("Running", "Succeeded") or any(map(starts, containers)):
        return True
    return "startTime" in status and bool(containers) and not rejects(form)


def _is_cleared(form: Json) -> bool:
    """Whether a kubelet that refuses the pod has removed what was known of it."""
    return "startTime" in form["status"] and not {"containerStatuses", "initContainerStatuses"} & form["status"].keys()


def _is_marked(told: Told) -> bool:
    """Whether a scheduler has decided to preempt the pod, and not taken it back."""
    conditions = told.manifest["status"]["conditions"]
    marks = [each for each in conditions if (each["type"], each["status"]) == ("DisruptionTarget", "True")]
    return any(mark["reason"] == "PreemptionByScheduler" for mark in marks)


def _is_deleted(told: Sequence[Told]) -> bool:
    """Whether its deletion was asked for, or it is gone."""
    return told[-1].event != "seen" or any("deletionTimestamp" in each.manifest["metadata"] for each in told)


def _starts(forms: Iterable[Json]) -> Iterable[int]:
    return (at for form in forms for each in form["status"].get("containerStatuses", ()) for at in starts(each))
