"""A naive reference for the accounting: what its contract says, second by second, in loops over plain documents.

It shares no code with the product. Everything happens at whole seconds since midnight, so that looking at each second
once is exact. What is told of a cluster is a log; the last word on a pod comes from all of its forms together.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from tests.told import Json, Prices, Told

MIDNIGHT = datetime.fromisoformat("2026-07-01T00:00:00+00:00")
REJECTIONS = ("OutOf", "UnexpectedAdmissionError", "NodeAffinity")
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
    nodes = [Node(told) for told in _by_uid(log, "node")]
    pods = [Pod(told, nodes) for told in _by_uid(log, "pod")]
    truth = Truth(Counter(), {}, Counter(), Counter(), 0)
    for second in range(opened, until):
        holding = [pod for pod in pods if pod.quantity and pod.holds(second)]
        for pod in holding:
            _bill(truth, pod, second, prices)
        for node in nodes:
            held = sum(pod.quantity for pod in holding if pod.node is node)
            if node.exists(second):
                truth.physical += node.physical(second)
                truth.capacity.update({(node.model, state): n for state, n in node.divided(second, held).items()})
        homeless = sum(pod.quantity for pod in holding if pod.node is None)
        truth.capacity.update({("unknown", state): homeless for state in ("allocated", "overcommitted")})
    return truth


def _bill(truth: Truth, pod: "Pod", second: int, prices: Prices) -> None:
    labels = (pod.tier, pod.tenant(second), pod.model, pod.state(second))
    truth.allocated[labels] += pod.quantity
    price = prices.of(pod.model, pod.tier, second)
    if price is None:
        truth.unpriced[labels[:3]] += pod.quantity
    else:
        truth.cost[labels] = truth.cost.get(labels, Fraction(0)) + price * Fraction(pod.quantity, 10**6) / 3600


class Node:
    """One incarnation of a node."""

    def __init__(self, told: list[Told]) -> None:
        self.seen = [t for t in told if t.event == "seen"]
        meta = self.seen[0].manifest["metadata"]
        self.name: str = meta["name"]
        self.labels: Json = meta["labels"]
        self.model: str = self.labels.get("nvidia.com/gpu.product", "unknown")
        self.created = seconds(meta["creationTimestamp"])
        self.ended = next((t for t in told if t.event != "seen"), None)
        self.gone = self.ended.since if self.ended else None

    def exists(self, second: int) -> bool:
        """From its creation to its deletion."""
        return self.created <= second and (self.gone is None or second < self.gone)

    def form(self, second: int) -> Json:
        """The form known then; the first one says what was so from the creation on."""
        return [t for t in self.seen if t.at <= second or t is self.seen[0]][-1].manifest

    def physical(self, second: int) -> int:
        """As many as the label says, else enough for what is offered, in millionths."""
        label = self.labels.get("nvidia.com/gpu.count")
        offered = self.offered(second, "capacity")
        return max(int(label) * 10**6, offered) if label else -(-offered // 10**6) * 10**6

    def offered(self, second: int, which: str) -> int:
        """What capacity or allocatable amount to, in millionths."""
        offered: Json = self.form(second)["status"][which]
        return sum(int(amount) * self.weight(name) for name, amount in offered.items() if "/" in name)

    def weight(self, resource: str) -> int:
        """Millionths of a GPU of one unit."""
        labelled = resource.removesuffix(".shared") + ".replicas"
        return weight(resource, replicas=int(self.labels.get(labelled, "1")))

    def is_ready(self, second: int) -> bool:
        """By the last change of the condition up to then."""
        conditions = [t.manifest["status"]["conditions"][0] for t in self.seen]
        changes = [c for c in conditions if seconds(c["lastTransitionTime"]) <= second] or conditions[:1]
        return bool(changes[-1]["status"] == "True")

    def divided(self, second: int, held: int) -> dict[str, int]:
        """What was held, and what the rest was, by precedence."""
        rest = self.physical(second) - held
        form = self.form(second)
        if rest < 0:
            return {"allocated": held, "overcommitted": -rest}
        if not self.is_ready(second):
            return {"allocated": held, "unknown": rest}
        if form["spec"].get("unschedulable"):
            return {"allocated": held, "cordoned": rest}
        capacity, allocatable = self.offered(second, "capacity"), self.offered(second, "allocatable")
        uncovered = self.physical(second) - capacity
        offered = [name for name, amount in form["status"]["capacity"].items() if "/" in name and int(amount)]
        sliced = any(self.weight(name) % 10**6 for name in offered)
        broken = capacity - allocatable + (0 if sliced else uncovered)
        unhealthy = min(rest, broken)
        unsliced = min(rest - unhealthy, uncovered if sliced else 0)
        free = rest - unhealthy - unsliced
        return {"allocated": held, "unhealthy": unhealthy, "unsliced": unsliced, "free": free}


class Pod:
    """One pod, by all that was told of it."""

    def __init__(self, told: list[Told], nodes: list[Node]) -> None:
        self.forms = [t.manifest for t in told if t.event != "vanished"]
        self.told = told
        self.tier: str = self.forms[0]["spec"].get("priorityClassName") or "none"
        self.started = min(_times(self.forms, "startedAt"), default=None)
        self.accepted = not self._is_rejected() and any(map(_is_accepted, self.forms))
        self.bound = min((b for form in self.forms if (b := self._bound(form)) is not None), default=None)
        self.asked = min((_asked(form) for form in self.forms if "deletionTimestamp" in form["metadata"]), default=None)
        self.node = self._placed(nodes)
        self.end = self._ended()
        self.replaced = self._replaced(nodes)
        weigh = self.node.weight if self.node else weight
        amounts: Json = self.forms[0]["spec"]["containers"][0]["resources"]["requests"]
        self.quantity = sum(self._limited(name, int(amount)) * weigh(name) for name, amount in amounts.items())
        self.model = self.node.model if self.node else "unknown"

    def holds(self, second: int) -> bool:
        """Whether it has its GPUs."""
        if self.bound is None or self._is_rejected():
            return False
        ends = (self.end, self.node.gone if self.node else self.replaced)
        return self.bound <= second and all(second < end for end in ends if end is not None)

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

    def _bound(self, form: Json) -> int | None:
        """When PodScheduled became True; without it its creator bound it, which only its kubelet's word makes true."""
        for condition in form["status"]["conditions"]:
            if (condition["type"], condition["status"]) == ("PodScheduled", "True"):
                return seconds(condition["lastTransitionTime"])
        claimed = form["spec"].get("nodeName") and self.accepted
        return seconds(form["metadata"]["creationTimestamp"]) if claimed else None

    def _is_bound(self, form: Json) -> bool:
        """Whether somebody other than its creator says so."""
        conditions = {(each["type"], each["status"]) for each in form["status"]["conditions"]}
        return bool(form["spec"].get("nodeName")) and (("PodScheduled", "True") in conditions or _is_accepted(form))

    def _limited(self, resource: str, amount: int) -> int:
        """What it asks for, or the most that its node was told to have offered as long as the pod existed."""
        if self.node is None:
            return amount
        last = max(t.at for t in self.told if t.event != "seen") if self._is_gone() else None
        told = [t.manifest["status"] for t in self.node.seen if last is None or t.at <= last]
        return min(amount, max(int(s[k].get(resource, 0)) for s in told for k in ("capacity", "allocatable")))

    def _is_gone(self) -> bool:
        return any(t.event != "seen" for t in self.told)

    def _placed(self, nodes: list[Node]) -> Node | None:
        """On the last incarnation of the node's name that existed when it was bound, or else may have."""
        if self.bound is None:
            return None
        named = [node for node in nodes if node.name == self._node_name()]
        fitting = [node for node in named if node.exists(self.bound)] or [node for node in named if self._was_on(node)]
        return max(fitting, key=lambda node: node.created, default=None)

    def _was_on(self, node: Node) -> bool:
        """Whether it was told to be bound there before the node's end was told, which may have been any time since."""
        bound = next(t for t in self.told if t.manifest["spec"].get("nodeName"))
        was_there = self.bound is not None and node.created <= self.bound
        return was_there and node.ended is not None and bound.at < node.ended.at

    def _replaced(self, nodes: list[Node]) -> int | None:
        """When another node of the name came; what was bound before it was bound to one nobody told of."""
        if self.bound is None:
            return None
        births = (node.created for node in nodes if node.name == self._node_name() and node.created > self.bound)
        return min(births, default=None)

    def _node_name(self) -> str:
        return next(str(form["spec"]["nodeName"]) for form in self.forms if form["spec"].get("nodeName"))

    def _is_rejected(self) -> bool:
        reasons = [form["status"].get("reason", "") for form in self.forms if form["status"]["phase"] == "Failed"]
        return self.started is None and any(reason.startswith(REJECTIONS) for reason in reasons)

    def _ended(self) -> int | None:
        """Its end, but no later than a pod that nobody accepted holds its GPUs."""
        ends = [self._observed_end()]
        if not self.accepted and self.bound is not None:
            ends.append(self.bound + ACCEPTANCE)
        return min((end for end in ends if end is not None), default=None)

    def _observed_end(self) -> int | None:
        """The last finish of a terminal pod, else the first terminal form seen, else its deletion."""
        terminal = [t for t in self.told if t.manifest["status"]["phase"] in ("Succeeded", "Failed")]
        finishes = list(_times([t.manifest for t in terminal], "finishedAt"))
        if finishes:
            return max(finishes)
        seen = [t for t in terminal if t.event != "vanished"] or [t for t in self.told if t.event != "seen"]
        if not seen:
            return None
        first = min(seen, key=lambda t: t.at)
        since = first.since if first in terminal else _since(first)
        return min(first.at, max(since, self.bound or 0, self.started or 0))


def weight(resource: str, *, replicas: int = 1) -> int:
    """Millionths of a GPU of one unit, MIG slices by compute."""
    if "/mig-" in resource:
        return 10**6 * int(resource.split("/mig-")[1][0]) // 7 // replicas
    return 10**6 // replicas


def seconds(text: str) -> int:
    """Since midnight."""
    return int((datetime.fromisoformat(text) - MIDNIGHT).total_seconds())


def _by_uid(log: list[Told], kind: str) -> Iterable[list[Told]]:
    mine = [t for t in log if t.kind == kind]
    for uid in dict.fromkeys(t.manifest["metadata"]["uid"] for t in mine):
        yield [t for t in mine if t.manifest["metadata"]["uid"] == uid]


def _is_accepted(form: Json) -> bool:
    """Whether the kubelet tells that it took the pod up."""
    return "startTime" in form["status"] or form["status"]["phase"] in ("Running", "Succeeded")


def _asked(form: Json) -> int:
    meta = form["metadata"]
    return seconds(meta["deletionTimestamp"]) - int(meta["deletionGracePeriodSeconds"])


def _since(told: Told) -> int:
    """The earliest moment of what was told: a pod is gone no sooner than its last deletion request, without grace."""
    meta = told.manifest["metadata"]
    if told.event != "gone" or meta.get("deletionGracePeriodSeconds") != 0:
        return told.since
    last = min(seconds(meta["deletionTimestamp"]), told.at)
    return min(told.at, last + 1) if told.since == told.at and told.at - last <= 2 else last


def _times(forms: Iterable[Json], name: str) -> Iterable[int]:
    for form in forms:
        for status in form["status"].get("containerStatuses", ()):
            for state in status["state"].values():
                if name in state and seconds(state[name]) >= 0:  # 1970 is no time at all
                    yield seconds(state[name])
