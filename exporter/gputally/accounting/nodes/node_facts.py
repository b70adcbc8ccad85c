"""The facts of a Node object, and their history."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from gputally.accounting.nodes.gpu_model import gpu_model_of
from gputally.accounting.nodes.node_history import cut, followed, most, with_readiness
from gputally.accounting.nodes.node_labels import (
    COUNT,
    INSTANCE_TYPE,
    First,
    first_seen,
    lapse_of,
    lapses,
    lasting,
    looked_at,
    lost,
    relevant,
)
from gputally.accounting.nodes.purchase import purchase_of
from gputally.accounting.shared import shared
from gputally.errors import MalformedObject
from gputally.model.kube import Condition, Node
from gputally.model.node import NodeFacts, NodeRecord, Span
from gputally.model.price import Asset
from gputally.model.rules import Rules
from gputally.model.units import GPU, to_us
from gputally.shares import gfd, mig
from gputally.shares.request import offered_units
from gputally.shares.schemes import Units, covered, divided, labels_of

NODE_READING = "4"
"""Increase it when the interpretation of nodes changes: stored records do not show that."""
_COUNT_DIGITS = 6
"""Labels may contain anything; a number with more digits is not a count of GPUs."""
_LAST_TURNS = 15
"""Stored periods in which a node was not ready, in addition to the last one."""
NO_POOL = "none"
"""The pool of a node without a pool label."""


def _facts_under(labels: Mapping[str, str], node: Node, rules: Rules, price_labels: frozenset[str]) -> NodeFacts:
    """The facts of `node` with these values of all relevant labels.

    `price_labels` are the label keys that price rules match on.

    Raises: MalformedObject for a capacity that is not a whole number.
    """
    try:
        fixed = _fixed(node, rules)
    except ValueError as error:
        raise MalformedObject(node.metadata.uid, str(error)) from None
    return _facts(tuple(sorted(labels.items())), fixed, rules, price_labels)


class _Fixed(NamedTuple):
    """Facts that do not depend on labels; fields as in NodeFacts."""

    units: tuple[tuple[str, int, int], ...]
    offered: Units | None
    ready: bool
    cordoned: bool


def _fixed(node: Node, rules: Rules) -> _Fixed:
    """Raises: ValueError for an invalid quantity."""
    capacity, allocatable = offered_units(node.status.capacity, rules), offered_units(node.status.allocatable, rules)
    units = tuple((name, capacity.get(name, 0), allocatable.get(name, 0)) for name in sorted({*capacity, *allocatable}))
    most = tuple((name, max(amounts)) for name, *amounts in units)
    return _Fixed(shared(units), shared(most), ready=_is_ready(node), cordoned=bool(node.spec.unschedulable))


@lru_cache(maxsize=4096)
def _facts(
    carried: tuple[tuple[str, str], ...], fixed: _Fixed, rules: Rules, price_labels: frozenset[str]
) -> NodeFacts:
    """One shared object for all equal nodes, which are most of a pool."""
    labels = dict(carried)
    units = [(name, amount) for name, amount, _ in fixed.units]
    capacity = covered(units, carried, rules)
    allocatable = covered([(name, amount) for name, _, amount in fixed.units], carried, rules)
    asset = asset_of(labels, rules, price_labels)
    return NodeFacts(
        physical=_physical(labels, capacity),
        covered=capacity,
        divided=divided(units, carried, rules),
        allocatable=min(allocatable, capacity),
        ready=fixed.ready,
        cordoned=fixed.cordoned,
        gpu_model=asset.gpu_model,
        pool=asset.pool,
        asset=shared(asset),
        purchase_conflict=purchase_of(labels)[1],
        labels=carried,
        units=fixed.units,
        offered=fixed.offered,
    )


def asset_of(labels: Mapping[str, str], rules: Rules, price_labels: frozenset[str]) -> Asset:
    """What the price of a node with these labels depends on; `price_labels` are the keys that price rules match on."""
    return Asset(
        instance_type=labels.get(INSTANCE_TYPE, ""),
        gpu_model=gpu_model_of(labels),
        pool=pool_of(labels, rules),
        purchase=purchase_of(labels)[0],
        labels=tuple(sorted((key, labels[key]) for key in price_labels & labels.keys())),
    )


def _with_labels(facts: NodeFacts, labels: Mapping[str, str], rules: Rules, price_labels: frozenset[str]) -> NodeFacts:
    if facts.labels is None:
        return facts  # an earlier version did not store the other inputs
    fixed = _Fixed(facts.units, facts.offered, facts.ready, facts.cordoned)
    return _facts(tuple(sorted(labels.items())), fixed, rules, price_labels)


def pool_of(labels: Mapping[str, str], rules: Rules) -> str:
    """The value of the first pool label that the node has."""
    return next((labels[key] for key in rules.pool_labels if labels.get(key)), NO_POOL)


def _physical(labels: Mapping[str, str], capacity: int) -> int:
    """Physical GPUs: from the label, otherwise as many whole GPUs as the offered units require.

    With the single MIG strategy, the label counts slices.
    """
    label = labels.get(COUNT, "")
    if not (label.isascii() and label.isdigit()) or len(label) > _COUNT_DIGITS:
        return -(-capacity // GPU) * GPU
    gpus = -(-int(label) // mig.slices_per_gpu(labels)) if gfd.single_profile(labels) else int(label)
    return max(gpus * GPU, capacity)


def observed(
    record: NodeRecord, node: Node, *, rules: Rules, price_labels: frozenset[str], at_us: int, since_us: int
) -> NodeRecord:
    """`record` updated from `node`, with each change from its earliest certain time on.

    Readiness has its own timestamp. The first facts apply from the node's creation on, and so do discovered labels that
    are added later. A discovered label stays in effect while it is missing; one that returns may have returned since
    `since_us`, the time up to which everything is known. All other changes apply from their observation on.

    Raises: MalformedObject for a capacity that is not a whole number.
    """
    present = relevant(labels_of(node), rules, price_labels)
    record = lapsed(record, rules=rules, price_labels=price_labels, at_us=since_us)
    first = first_seen(record, present)
    record = replace(
        record,
        lost=lost(record, present, at_us=at_us),
        looked_at=looked_at(record, rules, price_labels, at_us=at_us),
        machine=machine_of(node) or record.machine,
    )
    record = learned(record, first, rules=rules, price_labels=price_labels)
    held = lasting(record.lost, at_us=since_us if record.facts else record.created_us)
    facts = _facts_under(present | held, node, rules, price_labels)
    record = _stated(record, node, facts, at_us=at_us, since_us=since_us)
    return lapsed(record, rules=rules, price_labels=price_labels, at_us=since_us)


def _stated(record: NodeRecord, node: Node, facts: NodeFacts, *, at_us: int, since_us: int) -> NodeRecord:
    """`record` with the present `facts` of the node; its labels are already updated."""
    turned_us = min(at_us, _ready_since_us(node, at_us))
    record = replace(
        record, unready=_with_turn(record, ready=facts.ready, turned_us=turned_us, since_us=min(since_us, at_us))
    )
    if not record.facts:
        return replace(record, facts=((record.created_us, facts),))
    history = with_readiness(record.facts, ready=facts.ready, from_us=turned_us)
    facts = replace(facts, offered=most(history[-1][1].offered, facts.offered))
    if facts != history[-1][1]:
        history = followed(history, facts, from_us=at_us)
    return replace(record, facts=history)


def machine_of(node: Node) -> str:
    """The system UUID of the node's machine; "" if it reports none."""
    return node.status.node_info.system_uuid if node.status.node_info else ""


def _with_turn(record: NodeRecord, *, ready: bool, turned_us: int, since_us: int) -> tuple[Span, ...]:
    """The last periods in which the node was not ready. Unknown after False continues the same period.

    If the node became ready unobserved, it was not ready before, from the time up to which everything is known.
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


def lapsed(record: NodeRecord, *, rules: Rules, price_labels: frozenset[str], at_us: int) -> NodeRecord:
    """`record` without the labels that have expired by `at_us`, each from its expiry on."""
    for instant in (each for each in lapses(record) if each <= at_us):
        ended = {each.key for each in record.lost if lapse_of(each) <= instant}
        history = list(cut(record.facts, instant))
        for i, (since_us, facts) in enumerate(history):
            if since_us >= instant:
                labels = {key: value for key, value in facts.labels or () if key not in ended}
                history[i] = since_us, _with_labels(facts, labels, rules, price_labels)
        record = replace(record, facts=tuple(history))
    return record


def ended(record: NodeRecord, *, rules: Rules, price_labels: frozenset[str], at_us: int) -> NodeRecord:
    """`record` of a node that was deleted or replaced at `at_us`; labels that had not expired by then never do."""
    record = lapsed(record, rules=rules, price_labels=price_labels, at_us=at_us)
    spared = [each for each in record.lost if lapse_of(each) > at_us]
    history: list[tuple[int, NodeFacts]] = []
    for since_us, facts in record.facts:
        labels = {each.key: each.value for each in spared if lapse_of(each) <= since_us}
        history.append((since_us, _with_more(facts, labels, rules, price_labels) if labels else facts))
    return replace(record, facts=tuple(history))


def learned(record: NodeRecord, first: First, *, rules: Rules, price_labels: frozenset[str]) -> NodeRecord:
    """`record` with labels that are reported for the first time."""
    if not first or not record.facts:
        return record
    known = record.facts
    for from_us in {from_us for from_us, _ in first.values()}:
        known = cut(known, from_us)
    history: list[tuple[int, NodeFacts]] = []
    for at_us, facts in known:
        labels = {key: value for key, (from_us, value) in first.items() if from_us <= at_us}
        history.append((at_us, _with_more(facts, labels, rules, price_labels) if labels else facts))
    return replace(record, facts=tuple(history))


def _with_more(facts: NodeFacts, labels: Mapping[str, str], rules: Rules, price_labels: frozenset[str]) -> NodeFacts:
    """`facts` with additional `labels`. The pool stays as found by earlier rules, unless these labels contain one."""
    found = _with_labels(facts, dict(facts.labels or ()) | dict(labels), rules, price_labels)
    if labels.keys() & {*rules.pool_labels}:
        return found
    return replace(found, pool=facts.pool, asset=shared(replace(found.asset, pool=facts.pool)))


def _ready_condition(node: Node) -> Condition | None:
    return next((c for c in node.status.conditions or () if c.type == "Ready"), None)


def _ready_since_us(node: Node, at_us: int) -> int:
    condition = _ready_condition(node)
    return to_us(condition.last_transition_time) if condition and condition.last_transition_time else at_us


def _is_ready(node: Node) -> bool:
    condition = _ready_condition(node)
    return condition is not None and condition.status == "True"
