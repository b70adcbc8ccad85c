"""A naive scheduler, which tries every node, by the definitions alone; obstacles can be removed from it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gputally.model.kube.pods import LabelRequirement, NodeSelectorTerm, Toleration
from gputally.model.needs import Needs, Place, Taint, Taken
from gputally.model.verdicts import Obstacle, ObstacleKind
from gputally.placement.room import Room

UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


@dataclass(frozen=True)
class NaiveNode:
    """A node with its pods; pods nominated to it are marked by their UIDs."""

    place: Place
    pods: Mapping[str, Taken]
    nominated: Mapping[str, Taken] = field(default_factory=dict)


@dataclass(frozen=True)
class NaiveCluster:
    """A waiting pod before some nodes; `ignored` are requirements that each node is taken to meet.

    With `has_another`, a node was added where it fits.
    """

    needs: Needs
    nodes: tuple[NaiveNode, ...]
    blocks: frozenset[Obstacle] = frozenset()
    ignored: frozenset[str] = frozenset()
    has_another: bool = False

    def binds(self) -> bool:
        """Whether the scheduler binds the pod, at once or after a preemption."""
        return not self.blocks and (self.has_another or any(self.binds_on(node) for node in self.nodes))

    def fits_now(self) -> set[str]:
        """The nodes on which the pod fits without a preemption."""
        return {node.place.name for node in self.nodes if self.accepts(node) and self.has_space(node, node.pods)}

    def binds_on(self, node: NaiveNode) -> bool:
        rest = dict(node.pods)
        if self.needs.may_preempt:
            rest = {uid: pod for uid, pod in rest.items() if pod.priority >= self.needs.priority}
        return self.accepts(node) and self.has_space(node, rest)

    def has_space(self, node: NaiveNode, pods: Mapping[str, Taken]) -> bool:
        offered = dict(node.place.offered)
        reserved = [pod for pod in node.nominated.values() if pod.priority >= self.needs.priority]
        for resource, needed in self.needs.amounts:
            used = sum(dict(pod.amounts).get(resource, 0) for pod in (*pods.values(), *reserved))
            if needed > 0 and used + needed > offered.get(resource, 0):
                return False
        return True

    def accepts(self, node: NaiveNode) -> bool:
        place, needs = node.place, self.needs
        if place.is_cordoned and not tolerated(UNSCHEDULABLE, needs.tolerations):
            return False
        for taint in place.taints:
            if taint.effect != "PreferNoSchedule" and not tolerated(taint, needs.tolerations):
                return False
        labels = dict(place.labels)
        for key, value in needs.node_selector:
            if labels.get(key) != value and f"{key}={value}" not in self.ignored:
                return False
        terms = needs.node_terms
        return terms is None or any(self.matches(term, labels, place.name) for term in terms)

    def matches(self, term: NodeSelectorTerm, labels: Mapping[str, str], name: str) -> bool:
        expressions, fields = term.match_expressions or (), term.match_fields or ()
        if not expressions and not fields:
            return any("empty" in each for each in self.ignored)
        return all(self.meets(each, labels) for each in expressions) and all(
            self.meets(each, {"metadata.name": name}) for each in fields
        )

    def meets(self, requirement: LabelRequirement, labels: Mapping[str, str]) -> bool:
        return meets(requirement, labels) or written(requirement) in self.ignored

    def without(self, obstacles: Iterable[Obstacle]) -> "NaiveCluster":
        cluster = self
        for obstacle in obstacles:
            cluster = cluster.without_one(obstacle)
        return cluster

    def without_one(self, obstacle: Obstacle) -> "NaiveCluster":
        match obstacle.kind:
            case ObstacleKind.SELECTOR:
                return replace(self, ignored=self.ignored | {obstacle.what})
            case ObstacleKind.SIZE if not obstacle.node:
                return replace(self, has_another=True)
            case ObstacleKind.POLICY:
                return replace(self, needs=with_policy(self.needs))
            case ObstacleKind.TAINT | ObstacleKind.CORDON | ObstacleKind.RESOURCE | ObstacleKind.SIZE:
                nodes = [cleared(node, obstacle) if node.place.name == obstacle.node else node for node in self.nodes]
                return replace(self, nodes=tuple(nodes))
        return replace(self, blocks=self.blocks - {obstacle})


def naive(needs: Needs, room: Room) -> NaiveCluster:
    nodes = [NaiveNode(node.place, dict(node.taken), dict(node.nominated)) for node in room if node.place]
    return NaiveCluster(needs, tuple(nodes))


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    for each in tolerations:
        has_effect = each.effect in ("", taint.effect)
        has_key = each.key in ("", taint.key)
        has_value = each.operator == "Exists" or (each.operator in ("", "Equal") and each.value == taint.value)
        if has_effect and has_key and has_value:
            return True
    return False


def meets(requirement: LabelRequirement, labels: Mapping[str, str]) -> bool:
    has, values = requirement.key in labels, requirement.values or ()
    value = labels.get(requirement.key, "")
    if requirement.operator == "In":
        return has and value in values
    if requirement.operator == "NotIn":
        return not has or value not in values
    if requirement.operator == "Exists":
        return has
    if requirement.operator == "DoesNotExist":
        return not has
    try:
        number, bound = int(value), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if requirement.operator == "Gt" else number < bound


def written(requirement: LabelRequirement) -> str:
    key, values = requirement.key, ", ".join(requirement.values or ())
    forms = {
        "In": f"{key} in ({values})",
        "NotIn": f"{key} notin ({values})",
        "Exists": key,
        "DoesNotExist": f"!{key}",
        "Gt": f"{key} > {values}",
        "Lt": f"{key} < {values}",
    }
    return forms[requirement.operator]


def with_policy(needs: Needs) -> Needs:
    return changed(needs, may_preempt=True)


def changed(needs: Needs, **fields: object) -> Needs:
    known = {name: getattr(needs, name) for name in needs.__struct_fields__}
    return Needs(**(known | fields))


def cleared(node: NaiveNode, obstacle: Obstacle) -> NaiveNode:
    place, pods, nominated = node.place, dict(node.pods), dict(node.nominated)
    taints, is_cordoned, offered = place.taints, place.is_cordoned, dict(place.offered)
    if obstacle.kind is ObstacleKind.TAINT:
        taints = tuple(taint for taint in taints if str(taint) != obstacle.what)
    elif obstacle.kind is ObstacleKind.CORDON:
        taints, is_cordoned = tuple(taint for taint in taints if taint != UNSCHEDULABLE), False
    elif obstacle.kind is ObstacleKind.SIZE:
        offered[obstacle.what] = obstacle.needed or 0
    else:
        pods = {uid: pod for uid, pod in pods.items() if uid not in obstacle.pods}
        nominated = {uid: pod for uid, pod in nominated.items() if uid not in obstacle.pods}
    new = Place(
        uid=place.uid,
        name=place.name,
        labels=place.labels,
        taints=taints,
        offered=tuple(sorted(offered.items())),
        is_cordoned=is_cordoned,
    )
    return NaiveNode(new, pods, nominated)
