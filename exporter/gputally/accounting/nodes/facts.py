"""The facts of a Node object, and their history; a stand-in without GPUs replaces an unknown node."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from gputally.accounting.base.compact import shared
from gputally.accounting.facts.gpu_model import gpu_model_of
from gputally.accounting.facts.node_history import cut, most, with_facts, with_readiness
from gputally.accounting.nodes.labels import (
    INSTANCE_TYPE,
    First,
    first_seen,
    is_discovered,
    lapse_of,
    lapses,
    lasting,
    looked_at,
    lost,
    relevant,
)
from gputally.accounting.nodes.purchase import purchase_of
from gputally.errors import MalformedObject
from gputally.model.kube.meta import Condition
from gputally.model.kube.nodes import Node
from gputally.model.node_record import NodeFacts, NodeRecord, Span
from gputally.model.price import Asset
from gputally.model.rules import Rules
from gputally.model.units import GPU, to_us
from gputally.shares.label_conflicts import Sharing, sharing
from gputally.shares.request import offered_units
from gputally.shares.schemes import NodeLabels, Units, covered, divided, labels_of, sharing_of

NODE_READING = "5"
"""Increase it when the interpretation of nodes changes: stored records do not show that."""
_LAST_TURNS = 15
"""Stored periods in which a node was not ready, in addition to the last one."""
NO_POOL = "none"
"""The pool of a node without a pool label."""
_PREFIX = "unknown/"
NO_FACTS = NodeFacts(
    physical=0,
    covered=0,
    allocatable=0,
    ready=False,
    cordoned=False,
    gpu_model="unknown",
    pool=NO_POOL,
    asset=Asset(gpu_model="unknown", pool=NO_POOL),
)


class _Known(NamedTuple):
    """The last offer of any units, and the largest labelled number of GPUs that explained it; 0 if none did."""

    offer: Units = ()
    gpus: int = 0


def _known(facts: NodeFacts | None) -> _Known:
    if facts is None:
        return _Known()
    return _Known(_offer(facts.units) or facts.kept_offer, facts.gpus)


def _offer(units: Iterable[tuple[str, int, int]]) -> Units:
    return tuple([(name, amount) for name, amount, _ in units if amount])


def _facts_under(
    labels: Mapping[str, str], node: Node, known: _Known, rules: Rules, price_labels: frozenset[str]
) -> NodeFacts:
    """The facts of `node` with these values of all relevant labels, after what was `known` of it.

    `price_labels` are the label keys that price rules match on.

    Raises: MalformedObject for a capacity that is not a whole number.
    """
    try:
        fixed = _fixed(node, rules)
    except ValueError as error:
        raise MalformedObject(node.metadata.uid, str(error)) from None
    return _facts(tuple(sorted(labels.items())), fixed, known, rules, price_labels)


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
def _facts(carried: NodeLabels, fixed: _Fixed, known: _Known, rules: Rules, price_labels: frozenset[str]) -> NodeFacts:
    """One shared object for all equal nodes, which are most of a pool."""
    labels = dict(carried)
    offer = _offer(fixed.units)
    known = known if offer in ((), known.offer) else _Known(offer)
    shares = sharing(known.offer, carried, rules, known_gpus=known.gpus)
    capacity = covered(offer, shares.labels, rules)
    allocatable = covered([(name, amount) for name, _, amount in fixed.units], shares.labels, rules)
    asset = asset_of(labels, rules, price_labels)
    physical = _physical(shares, capacity, gpus=max(shares.gpus, known.gpus), offers=bool(offer))
    return NodeFacts(
        physical=physical,
        covered=capacity,
        divided=divided(offer, shares.labels, rules) or is_never_offered(physical, fixed.offered),
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
        gpus=max(known.gpus, shares.explained),
        kept_offer=() if offer else known.offer,
        conflict=shares.conflict,
        sharing=None if shares.labels == sharing_of(carried) else shares.labels,
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


def is_never_offered(physical: int, offered: Units | None) -> bool:
    """Whether the node has GPUs by its labels alone: it has never offered a GPU resource."""
    return physical > 0 and offered is not None and not any(amount for _, amount in offered)


def _with_labels(
    facts: NodeFacts, labels: Mapping[str, str], known: _Known, rules: Rules, price_labels: frozenset[str]
) -> NodeFacts:
    fixed = _Fixed(facts.units, facts.offered, facts.ready, facts.cordoned)
    return _facts(tuple(sorted(labels.items())), fixed, known, rules, price_labels)


def pool_of(labels: Mapping[str, str], rules: Rules) -> str:
    """The value of the first pool label that the node has."""
    return next((labels[key] for key in rules.pool_labels if labels.get(key)), NO_POOL)


def _physical(shares: Sharing, capacity: int, *, gpus: int, offers: bool) -> int:
    """Physical GPUs in µGPU: by the labels, otherwise as many whole GPUs as the offered units need."""
    if shares.gpus:
        return max(gpus * GPU, capacity)
    return max(-(-capacity // GPU), shares.needed if offers else 0) * GPU


def observed(  # noqa: PLR0913 - what the facts follow from
    record: NodeRecord,
    node: Node,
    *,
    rules: Rules,
    price_labels: frozenset[str],
    at_us: int,
    since_us: int,
    continued: NodeFacts | None = None,
) -> NodeRecord:
    """`record` updated from `node`, with each change from its earliest certain time on.

    Readiness has its own timestamp. The first facts apply from the node's creation on, and so do discovered labels that
    are added later. A discovered label stays in effect while it is missing; one that returns may have returned since
    `since_us`, the time up to which everything is known. All other changes apply from their observation on. The first
    facts may follow those of a `continued` incarnation.

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
    known = _known(record.facts[-1][1] if record.facts else continued)
    facts = _facts_under(present | held, node, known, rules, price_labels)
    record = _stated(record, node, facts, at_us=at_us, since_us=since_us)
    record = _with_first_offer(record, rules, price_labels)
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
    if not facts.covered:
        facts = replace(facts, divided=is_never_offered(facts.physical, facts.offered))
    if facts != history[-1][1]:
        history = with_facts(history, facts, from_us=at_us)
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
                labels = {key: value for key, value in facts.labels if key not in ended}
                known = _known(history[i - 1][1] if i else facts)
                history[i] = since_us, _with_labels(facts, labels, known, rules, price_labels)
        record = replace(record, facts=tuple(history))
    return record


def ended(record: NodeRecord, *, rules: Rules, price_labels: frozenset[str], at_us: int) -> NodeRecord:
    """`record` of a node that was deleted or replaced at `at_us`; labels that had not expired by then never do."""
    record = lapsed(record, rules=rules, price_labels=price_labels, at_us=at_us)
    spared = [each for each in record.lost if is_discovered(each.key) and lapse_of(each) > at_us]
    history: list[tuple[int, NodeFacts]] = []
    for since_us, facts in record.facts:
        labels = {each.key: each.value for each in spared if lapse_of(each) <= since_us}
        known = _known(history[-1][1] if history else facts)
        history.append((since_us, _with_more(facts, labels, known, rules, price_labels) if labels else facts))
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
        before = _known(history[-1][1] if history else facts)
        history.append((at_us, _with_more(facts, labels, before, rules, price_labels) if labels else facts))
    return _with_first_offer(replace(record, facts=tuple(history)), rules, price_labels)


def _with_first_offer(record: NodeRecord, rules: Rules, price_labels: frozenset[str]) -> NodeRecord:
    """`record` with corrected labels of its first offer also before that: pods may be bound in the same second."""
    if _known(record.facts[0][1]).offer:
        return record
    first = next((i for i, (_, facts) in enumerate(record.facts) if facts.units and _offer(facts.units)), 0)
    facts = record.facts[first][1]
    if facts.sharing is None:
        return record
    before = (
        (at, _with_labels(each, dict(each.labels), _known(facts), rules, price_labels))
        for at, each in record.facts[:first]
    )
    return replace(record, facts=(*before, *record.facts[first:]))


def _with_more(
    facts: NodeFacts, labels: Mapping[str, str], known: _Known, rules: Rules, price_labels: frozenset[str]
) -> NodeFacts:
    """`facts` with additional `labels`. The pool stays as found by earlier rules, unless these labels contain one."""
    found = _with_labels(facts, dict(facts.labels) | dict(labels), known, rules, price_labels)
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


def stand_in(name: str) -> NodeRecord:
    """The stand-in of all unknown nodes of that name."""
    return NodeRecord(uid=f"{_PREFIX}{name}", name=name, created_us=0, facts=((0, NO_FACTS),))


def is_stand_in(uid: str) -> bool:
    """Whether the account is a stand-in."""
    return uid.startswith(_PREFIX)
