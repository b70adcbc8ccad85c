"""Nodes as the naive reference knows them: what each offered, second by second, and as what it went on."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Protocol

from tests.told import Json, Told
from tests.true_ends import Interval, seconds, unready

DISCOVERED = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "feature.node.kubernetes.io/")
GIVEN = (*DISCOVERED, "cloud.google.com/")
GPU = "nvidia.com/gpu"
CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"
PARTITION = "cloud.google.com/gke-gpu-partition-size"
Offer = dict[str, int]
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
        self.corrections: dict[int, Offer] = {}
        self.counts: dict[int, int] = {}
        self.fitting: dict[int, int] = {}
        self.capacities: dict[int, Offer] = {}
        self.labels: dict[tuple[str, int], str | None] = {}

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
        if (key, second) not in self.labels:
            self.labels[key, second] = self._label(key, second)
        return self.labels[key, second]

    def _label(self, key: str, second: int) -> str | None:
        past = [(at, value) for at, _, value in self.before(key)]
        mine = [(t.at, t.since, t.manifest["metadata"]["labels"].get(key)) for t in self.seen]
        past += [
            (self.created if past and i == 0 else at, value)
            for i, (at, _, value) in enumerate(mine)
            if at <= second or not i
        ]
        known = [value for _, value in past if value is not None]
        if not known and key.startswith(GIVEN):
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
        names = (self.label(key, second) for key in ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator"))
        return next(filter(None, names), "unknown")

    def form(self, second: int) -> Json:
        """The form known then; the first one says what was so from the creation on."""
        return [t for t in self.seen if t.at <= second or t is self.seen[0]][-1].manifest

    def physical(self, second: int) -> int:
        """As many as the labels count or once counted beside the offer, else enough for what is offered."""
        if not self.exists(second):
            return 0
        offered, counted = self.offered(second, "capacity"), self.counted(second)
        if counted:
            return max(self.known_gpus(second) * 10**6, offered)
        needed = self.needed(self.capacity(second), second)
        return max(-(-offered // 10**6), needed) * 10**6

    def counted(self, second: int) -> int:
        """GPUs by the label; 0 without it."""
        if second not in self.counts:
            self.counts[second] = int(self.label(f"{GPU}.count", second) or "0")
        return self.counts[second]

    def known_gpus(self, second: int) -> int:
        """The most that the label counted, now or, as many as the same offer needs, since that is offered."""
        return max([self.counted(second), *(node.beside_offer(at) for at, node in self.offer(second)[1])])

    def beside_offer(self, second: int) -> int:
        """GPUs by the label, if what is offered then needs as many; else 0."""
        if second not in self.fitting:
            count = self.counted(second)
            self.fitting[second] = count if count == self.needed(self.capacity(second), second) else 0
        return self.fitting[second]

    def offer(self, second: int) -> tuple[Offer, list[tuple[int, "Node"]]]:
        """The last that was offered, and the seconds, with the incarnation, since when; else what comes first."""
        seconds = [*self.lived_before(), *((at, self) for at in range(self.created, second + 1))]
        offers = [(at, node, offer) for at, node in seconds if (offer := node.capacity(at))]
        if not offers:
            later = next((offer for t in self.seen if (offer := positive(t.manifest["status"]["capacity"]))), {})
            return later, []
        last = offers[-1][2]
        others = [i for i, (_, _, offer) in enumerate(offers) if offer != last]
        return last, [(at, node) for at, node, _ in offers[others[-1] + 1 if others else 0 :]]

    def lived_before(self) -> list[tuple[int, "Node"]]:
        """The seconds of the incarnations that it continues."""
        if self.previous is None:
            return []
        until = min(self.created, self.previous.gone[0] if self.previous.gone else self.created)
        own = [(at, self.previous) for at in range(self.previous.created, max(until, self.previous.created + 1))]
        return [*self.previous.lived_before(), *own]

    def capacity(self, second: int) -> Offer:
        """The units offered then."""
        if second not in self.capacities:
            self.capacities[second] = positive(self.form(second)["status"]["capacity"])
        return self.capacities[second]

    def needed(self, offer: Offer, second: int) -> int:
        """GPUs that so many units need by the labels."""
        nvidia = {name: amount for name, amount in offer.items() if name.startswith("nvidia.com/")}
        if len(nvidia) == 1:
            [(name, amount)] = nvidia.items()
            return -(-amount // (self.slices(name, second) * self.replicas(name, second)))
        return -(-sum(amount * self.labelled(name, second) for name, amount in nvidia.items()) // 10**6)

    def slices(self, resource: str, second: int) -> int:
        """Units on a GPU that is not shared."""
        profile = self.profile(resource, second)
        return 7 // int(profile[0]) if profile else 1

    def profile(self, resource: str, second: int) -> str:
        """That of a slice."""
        return resource.split("/mig-")[1] if "/mig-" in resource else self.label(PARTITION, second) or ""

    def replicas(self, resource: str, second: int) -> int:
        """By discovery, else by GKE."""
        found = int(self.label(resource.removesuffix(".shared") + ".replicas", second) or "1")
        return found if found > 1 or "/mig-" in resource else int(self.label(CLIENTS, second) or "1")

    def corrected(self, second: int) -> Offer:
        """Replicas by resource that the GPUs make of the offer, if the labels cannot be true."""
        if second not in self.corrections:
            self.corrections[second] = self._corrected(second)
        return self.corrections[second]

    def _corrected(self, second: int) -> Offer:
        offer, _ = self.offer(second)
        units = {name: amount for name, amount in offer.items() if name.startswith("nvidia.com/")}
        needed, gpus = self.needed(units, second), self.known_gpus(second)
        if not self.counted(second) or not units:
            return {}
        shared = any(name.endswith(".shared") or self.replicas(name, second) > 1 for name in (*units, GPU))
        too_many = needed > gpus and (needed % gpus == 0 or shared)
        if len(units) == 1:
            [(name, amount)] = units.items()
            too_few = amount < self.replicas(name, second)
            return {name: -(-amount // (gpus * self.slices(name, second)))} if too_many or too_few else {}
        return {name: self.replicas(name, second) * -(-needed // gpus) for name in units} if too_many else {}

    def offered(self, second: int, which: str) -> int:
        """What capacity or allocatable amount to, in millionths."""
        offered: Json = self.form(second)["status"][which]
        return sum(int(amount) * self.weight(name, second) for name, amount in offered.items() if is_gpu(name))

    def weight(self, resource: str, second: int) -> int:
        """Millionths of a GPU of one unit."""
        corrected = self.corrected(second)
        if resource not in corrected:
            return self.labelled(resource, second)
        return weight(resource, replicas=corrected[resource], profile=self.profile(resource, second))

    def labelled(self, resource: str, second: int) -> int:
        """The same, by the labels alone."""
        nvidia = resource.startswith("nvidia.com/")
        profile = self.profile(resource, second) if nvidia else ""
        return weight(resource, replicas=self.replicas(resource, second) if nvidia else 1, profile=profile)

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


def positive(amounts: Json) -> Offer:
    """The GPU resources of which there is something."""
    return {name: int(amount) for name, amount in sorted(amounts.items()) if is_gpu(name) and int(amount)}


def is_gpu(resource: str) -> bool:
    """Whether it is one that is weighed."""
    return resource in ("nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu") or "/mig-" in resource


def weight(resource: str, *, replicas: int = 1, profile: str = "") -> int:
    """Millionths of a GPU of one unit, MIG slices by compute."""
    profile = resource.split("/mig-")[1] if "/mig-" in resource else profile
    return (10**6 * int(profile[0]) // 7 if profile else 10**6) // replicas


def by_uid(log: Iterable[Told], kind: str) -> Iterable[list[Told]]:
    """What was told of each object of a kind."""
    mine = [t for t in log if t.kind == kind]
    for uid in dict.fromkeys(t.manifest["metadata"]["uid"] for t in mine):
        yield [t for t in mine if t.manifest["metadata"]["uid"] == uid]
