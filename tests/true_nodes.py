"""Nodes as the naive reference knows them: what each offered, second by second, and as what it went on."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Protocol

from tests.told import Json, Told
from tests.true_ends import Interval, seconds, unready

DISCOVERED = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "feature.node.kubernetes.io/")
OUTLIVES = 3600
"""For how many seconds a discovered label holds after it has gone."""


class AssignmentRecord(Protocol):
    """A pod."""

    def on(self, second: int) -> "Node | None":
        """The incarnation of its node that it has GPUs of."""

    def quantity(self, second: int) -> int:
        """Millionths of a GPU that it has then."""


def nodes_of(log: Iterable[Told]) -> list["Node"]:
    """All incarnations, each with the next of its name."""
    nodes = [Node(told) for told in by_uid(log, "node")]
    for node in nodes:
        later = [other for other in nodes if other.name == node.name and other.created > node.created]
        node.next = min(later, key=lambda other: other.created, default=None)
    for node in nodes:
        if node.successor:
            node.successor.previous = node
    return nodes


class Node:
    """One incarnation of a node."""

    def __init__(self, told: list[Told]) -> None:
        self.seen = [t for t in told if t.event == "seen"]
        meta = self.seen[0].manifest["metadata"]
        self.name: str = meta["name"]
        self.machine: str = self.seen[0].manifest["status"]["nodeInfo"]["systemUUID"]
        self.created = seconds(meta["creationTimestamp"])
        self.ended = next((t for t in told if t.event != "seen"), None)
        self.next: Node | None = None
        self.previous: Node | None = None
        self.capacity_until = self.gone[0] if self.gone else None

    @property
    def gone(self) -> Interval | None:
        """When it ceased to exist: before the next one of its name came."""
        return self.gone_as_told(inf)

    def gone_as_told(self, told_by: float) -> Interval | None:
        """The same, without a next one of which nothing was told by then."""
        if self.ended is None:
            return None
        followed = self.next is not None and self.next.seen[0].at <= told_by
        by = min(self.ended.at, self.next.created) if self.next and followed else self.ended.at
        return max(self.created, min(self.ended.since, by)), by

    @property
    def successor(self) -> "Node | None":
        """The incarnation that its machine went on as."""
        return self.next if self.next and self.machine and self.next.machine == self.machine else None

    def lineage(self, told_by: float = inf) -> list["Node"]:
        """Itself and what it went on as, as far as that was told by then."""
        if self.successor is None or self.successor.seen[0].at > told_by:
            return [self]
        return [self, *self.successor.lineage(told_by)]

    def out(self, until: int, told_by: float = inf) -> set[int]:
        """The seconds in which it could not be reached, as told by then, before its successors came included."""
        found = unready([t for t in self.seen if t.at <= told_by], created=self.created, until=until)
        if self.lineage(told_by) == [self] or self.successor is None:
            return found
        born = self.successor.created
        away = set(range(self.gone[0], born)) if self.gone else set()
        return {second for second in found if second < born} | away | self.successor.out(until, told_by)

    def last(self, pods: Sequence[AssignmentRecord]) -> None:
        """Of the interval in which it went, its capacity lasted as long as its pods had some."""
        if self.gone:
            held = [
                second + 1
                for second in range(*self.gone)
                if any(p.on(second) is self and p.quantity(second) for p in pods)
            ]
            self.capacity_until = max([self.gone[0], *held])

    def exists(self, second: int) -> bool:
        """From its creation to its deletion."""
        return self.created <= second and (self.capacity_until is None or second < self.capacity_until)

    def label(self, key: str, second: int) -> str | None:
        """Its value then: if discovered, as first told before that, and as last told for a while after it has gone.

        A machine that registers anew has what it had. A label that is told to be back may have been so since all was
        known, and one of a node that is gone is never lost.
        """
        past = [(at, value) for at, _, value in self.before(key)]
        mine = [(t.at, t.since, t.manifest["metadata"]["labels"].get(key)) for t in self.seen]
        past += [
            (self.created if past and i == 0 else at, value)
            for i, (at, _, value) in enumerate(mine)
            if at <= second or not i
        ]
        known = [value for _, value in past if value is not None]
        if not known and key.startswith(DISCOVERED):
            return next((value for value in self.after(key) if value is not None), None)
        if past[-1][1] is not None or not key.startswith(DISCOVERED):
            return past[-1][1]
        last = max(i for i, (_, value) in enumerate(past) if value is not None)
        ends = past[last + 1][0] + OUTLIVES
        back = next((since for at, since, value in mine if at > second and value is not None), None)
        gone = self.gone[0] if self.gone and not self.successor else None
        lasts = second < ends or (back is not None and back < ends) or (gone is not None and gone < ends)
        return known[-1] if lasts else None

    def before(self, key: str) -> list[tuple[int, int, str | None]]:
        """What was told of the label while it went on as others."""
        if self.previous is None:
            return []
        told = [(t.at, t.since, t.manifest["metadata"]["labels"].get(key)) for t in self.previous.seen]
        if earlier := self.previous.before(key):
            told[0] = (self.previous.created, *told[0][1:])
        return [*earlier, *told]

    def after(self, key: str) -> list[str | None]:
        """What was told of the label of itself, and of what it went on as."""
        return [t.manifest["metadata"]["labels"].get(key) for node in self.lineage() for t in node.seen]

    def model(self, second: int) -> str:
        """What its GPUs are."""
        return self.label("nvidia.com/gpu.product", second) or "unknown"

    def form(self, second: int) -> Json:
        """The form known then; the first one says what was so from the creation on."""
        return [t for t in self.seen if t.at <= second or t is self.seen[0]][-1].manifest

    def physical(self, second: int) -> int:
        """As many as the label says, else enough for what is offered, in millionths."""
        if not self.exists(second):
            return 0
        label = self.label("nvidia.com/gpu.count", second)
        offered = self.offered(second, "capacity")
        return max(int(label) * 10**6, offered) if label else -(-offered // 10**6) * 10**6

    def offered(self, second: int, which: str) -> int:
        """What capacity or allocatable amount to, in millionths."""
        offered: Json = self.form(second)["status"][which]
        return sum(int(amount) * self.weight(name, second) for name, amount in offered.items() if is_gpu(name))

    def weight(self, resource: str, second: int) -> int:
        """Millionths of a GPU of one unit."""
        labelled = resource.removesuffix(".shared") + ".replicas"
        return weight(resource, replicas=int(self.label(labelled, second) or "1"))

    def has_offered(self, second: int) -> bool:
        """Whether it was told by then to have, or to have had, any GPU that pods can request."""
        forms = [t.manifest["status"] for t in self.seen if t.at <= second or t is self.seen[0]]
        amounts = [pair for form in forms for which in ("capacity", "allocatable") for pair in form[which].items()]
        return any(is_gpu(name) and int(amount) for name, amount in amounts)

    def is_ready(self, second: int) -> bool:
        """By the last change of the condition up to then."""
        conditions = [t.manifest["status"]["conditions"][0] for t in self.seen]
        changes = [c for c in conditions if seconds(c["lastTransitionTime"]) <= second] or conditions[:1]
        return bool(changes[-1]["status"] == "True")

    def divided(self, second: int, held: int) -> dict[str, int]:
        """What was held, and what the rest was, by precedence."""
        rest = self.physical(second) - held
        form = self.form(second)
        if rest < 0 or not self.exists(second):
            return {"allocated": held, "overcommitted": -rest}
        if not self.is_ready(second):
            return {"allocated": held, "unknown": rest}
        if form["spec"].get("unschedulable"):
            return {"allocated": held, "cordoned": rest}
        capacity, allocatable = self.offered(second, "capacity"), self.offered(second, "allocatable")
        uncovered = self.physical(second) - capacity
        offered = [name for name, amount in form["status"]["capacity"].items() if is_gpu(name) and int(amount)]
        sliced = any(self.weight(name, second) % 10**6 for name in offered) or not self.has_offered(second)
        broken = capacity - allocatable + (0 if sliced else uncovered)
        unhealthy = min(rest, broken)
        unsliced = min(rest - unhealthy, uncovered if sliced else 0)
        free = rest - unhealthy - unsliced
        return {"allocated": held, "unhealthy": unhealthy, "unsliced": unsliced, "free": free}


def is_gpu(resource: str) -> bool:
    """Whether it is one that is weighed."""
    return resource in ("nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu") or "/mig-" in resource


def weight(resource: str, *, replicas: int = 1) -> int:
    """Millionths of a GPU of one unit, MIG slices by compute."""
    if "/mig-" in resource:
        return 10**6 * int(resource.split("/mig-")[1][0]) // 7 // replicas
    return 10**6 // replicas


def by_uid(log: Iterable[Told], kind: str) -> Iterable[list[Told]]:
    """What was told of each object of a kind."""
    mine = [t for t in log if t.kind == kind]
    for uid in dict.fromkeys(t.manifest["metadata"]["uid"] for t in mine):
        yield [t for t in mine if t.manifest["metadata"]["uid"] == uid]
