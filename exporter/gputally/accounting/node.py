"""What a Node object says, and the history of it."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from msgspec.structs import replace

from gputally.accounting.gpu_model import gpu_model_of
from gputally.accounting.node_labels import COUNT, INSTANCE_TYPE, first_seen, lapse_of, lapses, lasting, lost, relevant
from gputally.accounting.purchase import purchase_of
from gputally.accounting.request import Units, most_units
from gputally.accounting.shared import shared
from gputally.accounting.weight import covered, divided, sharing_of, slices_per_gpu, unit_weight, units_of
from gputally.errors import MalformedObject
from gputally.model.kube import Condition, Node
from gputally.model.node import NodeFacts, NodeRecord, Sharing, Span
from gputally.model.price import Asset
from gputally.model.rules import Rules
from gputally.model.units import GPU, to_us

NODE_READING = "3"
"""To be raised when a node is read otherwise: what an earlier version kept of nodes does not tell that."""
_COUNT_DIGITS = 6
"""Anybody who may label nodes can write a count; one with more digits is no count of GPUs."""
_LAST_TURNS = 15
"""Of times when a node was not ready, so many are remembered besides the last."""
History = tuple[tuple[int, NodeFacts], ...]
"""Facts with the instant from which on they hold, the oldest first."""
NO_POOL = "none"
"""The pool of a node that carries none of the pool labels."""


def facts_of(
    node: Node, rules: Rules, price_labels: frozenset[str], *, lasting: Mapping[str, str] | None = None
) -> NodeFacts:
    """What is true of `node` now. `price_labels` are the label keys that price rules match on.

    `lasting` are labels that hold though the node does not carry them now.

    Raises: MalformedObject for a capacity that is no whole number.
    """
    labels = relevant(node.metadata.labels or {}, rules, price_labels) | dict(lasting or {})
    try:
        fixed = _fixed(node, rules)
    except ValueError as error:
        raise MalformedObject(node.metadata.uid, str(error)) from None
    return _facts(labels, fixed, rules, price_labels)


class _Fixed(NamedTuple):
    """What of a node's facts does not follow from its labels; fields as in NodeFacts."""

    units: tuple[tuple[str, int, int], ...]
    offered: Units | None
    ready: bool
    cordoned: bool


def _fixed(node: Node, rules: Rules) -> _Fixed:
    """Raises: ValueError for a broken quantity."""
    capacity, allocatable = units_of(node.status.capacity, rules), units_of(node.status.allocatable, rules)
    units = tuple((name, capacity.get(name, 0), allocatable.get(name, 0)) for name in sorted({*capacity, *allocatable}))
    most = most_units(node.status.capacity, node.status.allocatable, rules.resources)
    return _Fixed(shared(units), shared(most), ready=_is_ready(node), cordoned=bool(node.spec.unschedulable))


def _facts(labels: Mapping[str, str], fixed: _Fixed, rules: Rules, price_labels: frozenset[str]) -> NodeFacts:
    sharing = shared(sharing_of(labels))
    units = {name: amount for name, amount, _ in fixed.units}
    capacity = covered(units, sharing, rules)
    allocatable = covered({name: amount for name, _, amount in fixed.units}, sharing, rules)
    purchase, conflict = purchase_of(labels)
    asset = Asset(
        instance_type=labels.get(INSTANCE_TYPE, ""),
        gpu_model=gpu_model_of(labels),
        pool=pool_of(labels, rules),
        purchase=purchase,
        labels=tuple(sorted((key, labels[key]) for key in price_labels & labels.keys())),
    )
    return NodeFacts(
        physical=_physical(labels, capacity, sharing),
        covered=capacity,
        divided=divided(units, sharing, rules),
        allocatable=min(allocatable, capacity),
        ready=fixed.ready,
        cordoned=fixed.cordoned,
        gpu_model=asset.gpu_model,
        pool=asset.pool,
        asset=shared(asset),
        purchase_conflict=conflict,
        sharing=sharing,
        labels=shared(tuple(sorted(labels.items()))),
        units=fixed.units,
        offered=fixed.offered,
    )


def _with_labels(facts: NodeFacts, labels: Mapping[str, str], rules: Rules, price_labels: frozenset[str]) -> NodeFacts:
    if facts.labels is None:
        return facts  # an earlier version did not keep what else they follow from
    return _facts(labels, _Fixed(facts.units, facts.offered, facts.ready, facts.cordoned), rules, price_labels)


def pool_of(labels: Mapping[str, str], rules: Rules) -> str:
    """The value of the first pool label the node carries."""
    return next((labels[key] for key in rules.pool_labels if labels.get(key)), NO_POOL)


def _physical(labels: Mapping[str, str], capacity: int, sharing: Sharing) -> int:
    """Physical GPUs: as labelled, else as many whole ones as the offered units need.

    Under the single MIG strategy the label counts slices.
    """
    label = labels.get(COUNT, "")
    if not (label.isascii() and label.isdigit()) or len(label) > _COUNT_DIGITS:
        return -(-capacity // GPU) * GPU
    gpus = -(-int(label) // slices_per_gpu(sharing)) if sharing.profile else int(label)
    return max(gpus * GPU, capacity)


def observed(
    record: NodeRecord, node: Node, *, rules: Rules, price_labels: frozenset[str], at_us: int, since_us: int
) -> NodeRecord:
    """`record` with what `node` says, from the moment it can be said to hold.

    Readiness has a timestamp of its own. The first facts hold from the node's creation, and so does a label that is
    told for the first time. A discovered label outlives its absence; one that is back may have been back since
    `since_us`, up to when all is known. All else holds from its observation.

    Raises: MalformedObject for a capacity that is no whole number.
    """
    present = relevant(node.metadata.labels or {}, rules, price_labels)
    record = lapsed(record, rules=rules, price_labels=price_labels, at_us=since_us)
    first = first_seen(record, present)
    record = replace(record, lost=lost(record, present, at_us=at_us), machine=machine_of(node) or record.machine)
    record = learned(record, first, rules=rules, price_labels=price_labels)
    record = _stated(record, node, rules=rules, price_labels=price_labels, at_us=at_us, since_us=since_us)
    return lapsed(record, rules=rules, price_labels=price_labels, at_us=since_us)


def _stated(
    record: NodeRecord, node: Node, *, rules: Rules, price_labels: frozenset[str], at_us: int, since_us: int
) -> NodeRecord:
    """`record` with what `node` says now; its labels are settled."""
    born = not record.facts
    held = lasting(record.lost, at_us=record.created_us if born else since_us)
    facts = facts_of(node, rules, price_labels, lasting=held)
    turned_us = min(at_us, _ready_since_us(node, at_us))
    record = replace(
        record, unready=_with_turn(record, ready=facts.ready, turned_us=turned_us, since_us=min(since_us, at_us))
    )
    if born:
        return replace(record, facts=((record.created_us, facts),))
    history = _with_readiness(record.facts, ready=facts.ready, from_us=turned_us)
    facts = replace(facts, offered=most(history[-1][1].offered, facts.offered))
    if facts != history[-1][1]:
        history = _followed(history, facts, from_us=at_us)
    return replace(record, facts=history)


def machine_of(node: Node) -> str:
    """The system UUID of what the node runs on, "" where it tells none."""
    return node.status.node_info.system_uuid if node.status.node_info else ""


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


def lapsed(record: NodeRecord, *, rules: Rules, price_labels: frozenset[str], at_us: int) -> NodeRecord:
    """`record` without the labels that have been away for too long by `at_us`, each from the instant it was."""
    for instant in (each for each in lapses(record) if each <= at_us):
        ended = {each.key for each in record.lost if lapse_of(each) <= instant}
        from_us = max(instant, record.facts[0][0])
        before = [entry for entry in record.facts if entry[0] <= from_us]
        after = [(from_us, before[-1][1]), *(entry for entry in record.facts if entry[0] > from_us)]
        history = [entry for entry in before if entry[0] < from_us]
        for since_us, facts in after:
            labels = {key: value for key, value in facts.labels or () if key not in ended}
            history.append((since_us, _with_labels(facts, labels, rules, price_labels)))
        record = replace(record, facts=tuple(history))
    return record


def learned(record: NodeRecord, first: Mapping[str, str], *, rules: Rules, price_labels: frozenset[str]) -> NodeRecord:
    """`record` with labels that were never told before: they say what was so since the node's birth."""
    if not first:
        return record
    known = [(at_us, facts, {**dict(facts.labels or ()), **first}) for at_us, facts in record.facts]
    history = tuple((at_us, _with_labels(facts, labels, rules, price_labels)) for at_us, facts, labels in known)
    return replace(record, facts=history)


def _followed(history: History, facts: NodeFacts, *, from_us: int) -> History:
    from_us = max(from_us, history[-1][0])
    return (*(entry for entry in history if entry[0] < from_us), (from_us, facts))


def chained(records: Sequence[NodeRecord]) -> History:
    """The history of incarnations that continue each other, each until the next was created."""
    found: list[tuple[int, NodeFacts]] = []
    for record, following in zip_longest(records, records[1:]):
        for from_us, facts in record.facts:
            if following is None or from_us < following.created_us:
                offered = most(found[-1][1].offered, facts.offered) if found else facts.offered
                found.append((from_us, replace(facts, offered=offered)))
    return tuple(found)


def classes(history: History) -> History:
    """`history` where what the node's pods are and cost changes."""
    found: list[tuple[int, NodeFacts]] = []
    for entry in history:
        if not found or _class(found[-1]) != _class(entry):
            found.append(entry)
    return tuple(found)


def reclassified_us(before: History, after: History) -> int | None:
    """From when on the node's pods are, or cost, something else than was thought; None if nothing of that changed."""
    for was, now in zip_longest(classes(before), classes(after)):
        if was is None or now is None or (was[0], _class(was)) != (now[0], _class(now)):
            return min(entry[0] for entry in (was, now) if entry)
    return None


def _class(entry: tuple[int, NodeFacts]) -> tuple[Asset, Sharing, Units | None]:
    return entry[1].asset, entry[1].sharing, entry[1].offered


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
