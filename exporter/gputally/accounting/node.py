"""What a Node object says, and the history of it."""

from collections.abc import Mapping
from functools import lru_cache

from msgspec.structs import replace

from gputally.accounting.gpu_model import gpu_model_of
from gputally.accounting.purchase import purchase_of
from gputally.accounting.request import Units, most_units
from gputally.accounting.weight import covered, divided, sharing_of, slices_per_gpu, unit_weight
from gputally.errors import MalformedObject
from gputally.model.kube import Condition, Node
from gputally.model.node import NodeFacts, NodeRecord, Sharing, Span
from gputally.model.price import Asset
from gputally.model.rules import Rules
from gputally.model.units import GPU, to_us

NODE_READING = "2"
"""To be raised when a node is read otherwise: what an earlier version kept of nodes does not tell that."""
_COUNT = "nvidia.com/gpu.count"
_COUNT_DIGITS = 6
"""Anybody who may label nodes can write a count; one with more digits is no count of GPUs."""
_LAST_TURNS = 15
"""Of times when a node was not ready, so many are remembered besides the last."""
History = tuple[tuple[int, NodeFacts], ...]
"""Facts with the instant from which on they hold, the oldest first."""
NO_POOL = "none"
"""The pool of a node that carries none of the pool labels."""


def facts_of(node: Node, rules: Rules, price_labels: frozenset[str]) -> NodeFacts:
    """What is true of `node` now. `price_labels` are the label keys that price rules match on.

    Raises: MalformedObject for a capacity that is no whole number.
    """
    labels = node.metadata.labels or {}
    sharing = sharing_of(labels)
    try:
        offered = most_units(node.status.capacity, node.status.allocatable, rules.resources)
        capacity = covered(node.status.capacity, sharing, rules)
        allocatable = covered(node.status.allocatable, sharing, rules)
        parts = divided(node.status.capacity, sharing, rules)
    except ValueError as error:
        raise MalformedObject(node.metadata.uid, str(error)) from None
    purchase, conflict = purchase_of(labels)
    pool = pool_of(labels, rules)
    asset = Asset(
        instance_type=labels.get("node.kubernetes.io/instance-type", ""),
        gpu_model=gpu_model_of(labels),
        pool=pool,
        purchase=purchase,
        labels=tuple(sorted((key, labels[key]) for key in price_labels & labels.keys())),
    )
    return NodeFacts(
        physical=_physical(labels, capacity, sharing),
        covered=capacity,
        divided=parts,
        allocatable=min(allocatable, capacity),
        ready=_is_ready(node),
        cordoned=bool(node.spec.unschedulable),
        gpu_model=asset.gpu_model,
        pool=pool,
        asset=asset,
        purchase_conflict=conflict,
        sharing=sharing,
        offered=offered,
    )


def pool_of(labels: Mapping[str, str], rules: Rules) -> str:
    """The value of the first pool label the node carries."""
    return next((labels[key] for key in rules.pool_labels if labels.get(key)), NO_POOL)


def _physical(labels: Mapping[str, str], capacity: int, sharing: Sharing) -> int:
    """Physical GPUs: as labelled, else as many whole ones as the offered units need.

    Under the single MIG strategy the label counts slices.
    """
    label = labels.get(_COUNT, "")
    if not (label.isascii() and label.isdigit()) or len(label) > _COUNT_DIGITS:
        return -(-capacity // GPU) * GPU
    gpus = -(-int(label) // slices_per_gpu(sharing)) if sharing.profile else int(label)
    return max(gpus * GPU, capacity)


def observed(record: NodeRecord, node: Node, facts: NodeFacts, *, at_us: int, since_us: int) -> NodeRecord:
    """`record` with `facts`, from the moment they can be said to hold.

    Readiness has a timestamp of its own; all else holds from its observation, and the first facts from
    the node's creation.
    """
    machine = node.status.node_info.system_uuid if node.status.node_info else ""
    record = replace(record, machine=machine or record.machine)
    turned_us = min(at_us, _ready_since_us(node, at_us))
    unready = _with_turn(record, ready=facts.ready, turned_us=turned_us, since_us=min(since_us, at_us))
    if not record.facts:
        return replace(record, facts=((record.created_us, facts),), unready=unready)
    history = _with_readiness(record.facts, ready=facts.ready, from_us=turned_us)
    since_us, latest = history[-1]
    facts = replace(facts, offered=most(latest.offered, facts.offered))
    if facts != latest:
        from_us = max(at_us, since_us)
        history = (*(entry for entry in history if entry[0] < from_us), (from_us, facts))
    return replace(record, facts=history, unready=unready)


def _with_turn(record: NodeRecord, *, ready: bool, turned_us: int, since_us: int) -> tuple[Span, ...]:
    """The last times the node was not ready. Unknown after False is still the same time.

    One that turned ready unseen was not ready before that, at most since all was known.
    """
    known = record.unready
    is_open = bool(known) and known[-1][1] is None
    if not ready:
        return known if is_open else (*known[-_LAST_TURNS:], (turned_us, None))
    if is_open:
        return (*known[:-1], (known[-1][0], max(turned_us, known[-1][0])))
    if record.facts and turned_us > max(since_us, *(back_us or 0 for _, back_us in known), record.created_us):
        return (*known[-_LAST_TURNS:], (since_us, turned_us))
    return known


def most(known: Units | None, new: Units | None) -> Units | None:
    """The most units of each resource in either offer."""
    if known == new or not known:
        return new
    amounts = dict(known)
    for name, amount in new or ():
        amounts[name] = max(amount, amounts.get(name, 0))
    return tuple(sorted(amounts.items()))


def _with_readiness(history: History, *, ready: bool, from_us: int) -> History:
    """`history` with the node `ready` or not from `from_us` on, whatever else changed since."""
    if ready is history[-1][1].ready:
        return history
    from_us = max(from_us, history[0][0])
    before = [entry for entry in history if entry[0] <= from_us]
    after = ((at_us, replace(facts, ready=ready)) for at_us, facts in history if at_us > from_us)
    changed = (from_us, replace(before[-1][1], ready=ready))
    return (*(entry for entry in before if entry[0] < from_us), changed, *after)


@lru_cache(maxsize=4096)
def quantities_on(units: tuple[tuple[str, int], ...], sharing: Sharing, rules: Rules) -> tuple[tuple[str, int], ...]:
    """µGPU by resource of so many device `units` on a node that shares like `sharing`."""
    return tuple((name, amount * unit_weight(name, sharing, rules)) for name, amount in units)


def _ready_condition(node: Node) -> Condition | None:
    return next((c for c in node.status.conditions or () if c.type == "Ready"), None)


def _ready_since_us(node: Node, at_us: int) -> int:
    condition = _ready_condition(node)
    return to_us(condition.last_transition_time) if condition and condition.last_transition_time else at_us


def _is_ready(node: Node) -> bool:
    condition = _ready_condition(node)
    return condition is not None and condition.status == "True"
