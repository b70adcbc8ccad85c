"""Converts the structs of the accounting to rows of the ledger, and back."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gputally.accounting.changes.changes import UNKNOWN, Changes
from gputally.model.allocation import Segment, Terms
from gputally.model.disruptions.disruption import DisruptionRecord
from gputally.model.disruptions.preemption import Preemption, Preemptor
from gputally.model.history import grown
from gputally.model.node import NodeRecord
from gputally.model.pod import PodRecord
from gputally.model.price import Asset

Row = tuple[Any, ...]


def _insert(columns: int, into: str) -> str:
    return f"INSERT OR {into} VALUES ({', '.join('?' * columns)})"  # noqa: S608 (literals only)


INSERT_CAPACITY: Final = _insert(15, "REPLACE INTO capacity")
INSERT_ASSET_PRICE: Final = _insert(7, "REPLACE INTO capacity_prices")
INSERT_NODE_END: Final = _insert(4, "REPLACE INTO node_ends")
INSERT_REREGISTRATION: Final = _insert(2, "IGNORE INTO reregistrations")
INSERT_PREEMPTION: Final = _insert(26, "REPLACE INTO preemptions")
INSERT_DISRUPTION: Final = _insert(25, "REPLACE INTO disruptions")
INSERT_INTERRUPTION: Final = _insert(3, "REPLACE INTO interruptions")
UPSERT_SERIES: Final = _insert(8, "REPLACE INTO series")
INSERT_HISTORY: Final = _insert(4, "REPLACE INTO histories")
_HEAD: Final = 8
"""Entries of a history that are stored in its document; most pods have fewer."""


def capacity(changes: Changes) -> Iterator[Row]:
    """New facts of nodes."""
    for (uid, from_us), (name, f) in changes.capacity.items():
        offered = (f.physical, f.covered, f.allocatable, f.ready, f.cordoned, f.gpu_model, f.pool)
        asset = (f.asset.instance_type, f.asset.purchase.value)
        yield uid, from_us, changes.at_us, name, *offered, *asset, f.divided, price_labels(f.asset)


def asset_prices(changes: Changes) -> Iterator[Row]:
    """New prices of capacity."""
    for (a, from_us), price in changes.asset_prices.items():
        asset = (a.instance_type, a.gpu_model, a.pool, a.purchase.value, price_labels(a))
        yield *asset, from_us, price.key if price else None


def price_labels(asset: Asset) -> str:
    """The labels of a node that price rules name, as JSON."""
    return json.dumps(dict(asset.labels), separators=(",", ":"))


def node_ends(changes: Changes) -> Iterator[Row]:
    """Deleted nodes, with the latest possible time of deletion if the exact time is unknown."""
    for record in filter(None, changes.nodes.values()):
        if record.gone_us is not None:
            by_us = record.gone_by_us
            yield record.uid, record.name, record.gone_us, by_us if by_us and by_us > record.gone_us else None


def reregistrations(changes: Changes) -> Iterator[Row]:
    """Nodes whose machine had another UID before."""
    return ((node.uid, node.continues) for node in changes.nodes.values() if node and node.continues)


def preemptions(changes: Changes) -> Iterator[Row]:
    """Preemptions as counted."""
    for p in filter(None, changes.counted_preemptions.values()):
        preemptor = p.preemptor
        yield (
            p.victim_uid,
            changes.at_us,
            p.victim_namespace,
            p.victim_name,
            p.victim_tier,
            p.victim_tenant,
            preemptor.uid if preemptor else None,
            preemptor.namespace if preemptor else None,
            preemptor.name if preemptor else None,
            p.counted[1] if p.counted else "",
            p.node,
            p.quantity,
            p.decided_us,
            p.requested_us,
            p.released_us,
            bool(preemptor and preemptor.is_inferred),
            *(p.victim_class, p.victim_priority),
            *_powers(preemptor),
            *_workload(p),
        )


def withdrawn_preemptions(changes: Changes) -> Iterator[Row]:
    """Victims of queues that had ended by themselves after all."""
    return ((uid,) for uid, each in changes.counted_preemptions.items() if each is None)


def _powers(preemptor: Preemptor | None) -> Row:
    """Class, priority and whether its policy permits preemptions; NULL while the pod is not known."""
    if preemptor is None or preemptor.priority is None:
        return None, None, None
    return preemptor.class_name, preemptor.priority, preemptor.may_preempt


def _workload(preemption: Preemption) -> Row:
    """Tenant, and for a workload the job, GPUs and pods on the node; the rule of the queue."""
    by = preemption.preemptor
    tenant = by.tenant if by and by.tier else None
    if by is None or not by.kind:
        return tenant, None, None, None, preemption.queue_rule
    pods = json.dumps(preemption.preemptor_pods) if by.uid else None  # KAI names no UID: its pods are not recognised
    return tenant, by.kind, by.quantity, pods, preemption.queue_rule


def disruptions(changes: Changes) -> Iterator[Row]:
    """Disrupted pods, as last known."""
    for each in filter(None, changes.disruptions.values()):
        values = (getattr(each, name) for name in DisruptionRecord.__struct_fields__[1:])
        yield each.victim_uid, changes.at_us, *values


def withdrawn(changes: Changes) -> Iterator[Row]:
    """Pods that had ended by themselves after all."""
    return ((uid,) for uid, each in changes.disruptions.items() if each is None)


def interruptions(changes: Changes) -> Iterator[Row]:
    """Interruptions of watches."""
    return ((kind.value, from_us, to_us) for (kind, from_us), to_us in changes.interruptions.items())


def series(changes: Changes) -> Iterator[Row]:
    """Changed counters; integers as text, since they outgrow 64 bits."""
    for (total, labels), s in changes.series.items():
        if s is not None:
            numbers = (str(s.a), str(s.b), str(s.floor))
            yield total.value, json.dumps(labels), s.created_us, *numbers, s.floor_us, s.shown_us


def dropped_series(changes: Changes) -> Iterator[Row]:
    """Deleted counters."""
    return ((total.value, json.dumps(labels)) for (total, labels), s in changes.series.items() if s is None)


def known_values(changes: Changes) -> Iterator[Row]:
    """Changed label values, exported now or before."""
    for (label, value), each in changes.known_values.items():
        if each is not None:
            yield label, value, each.grew_us, each.evicted_us


def forgotten(changes: Changes) -> Iterator[Row]:
    """Deleted label values."""
    return (value for value, each in changes.known_values.items() if each is None)


def working(changes: Changes) -> Iterator[Row]:
    """Changed working state; its documents have a bounded size."""
    encode = msgspec.json.Encoder().encode
    for kind, records in _working(changes):
        for uid, record in records.items():
            if record is not None:
                yield kind, uid, encode(_short(record))


def _short(record: object) -> object:
    """The record without data in other rows, and without old facts of nodes: that capacity is final after a restart."""
    match record:
        case PodRecord():
            return replace(record, segments=(), terms=record.terms[:_HEAD])
        case NodeRecord():
            return replace(record, facts=record.facts[-_HEAD:])
        case _:
            return record


def histories(changes: Changes) -> Iterator[Row]:
    """Terms of pods beyond those in their documents."""
    encode = msgspec.json.Encoder().encode
    for kind, records in (("pod", changes.pods), ("departed", changes.departed)):
        for uid, record in records.items():
            if record and len(record.terms) > _HEAD:
                kept = changes.known.get(uid, UNKNOWN).terms if kind == "pod" else 0
                for ordinal, terms in enumerate(record.terms[max(kept, _HEAD) :], max(kept, _HEAD)):
                    yield kind, uid, ordinal, encode(terms)


def outdated(changes: Changes) -> Iterator[Row]:
    """The first ordinal to delete from each history that became shorter or was deleted."""
    for kind, records in (("pod", changes.pods), ("departed", changes.departed)):
        for uid, record in records.items():
            yield kind, uid, len(record.terms) if record else 0


def with_history(record: PodRecord, segments: Sequence[Segment], terms: Sequence[Terms]) -> PodRecord:
    """The saved pod with its segments and all terms; its document has only the first terms."""
    known = tuple(record.terms[:_HEAD])
    return replace(record, segments=grown((), 0, segments), terms=grown(known, _HEAD, terms) if terms else known)


def dropped(changes: Changes) -> Iterator[Row]:
    """Deleted working state."""
    return ((kind, uid) for kind, records in _working(changes) for uid, record in records.items() if record is None)


def watches(changes: Changes) -> Iterator[Row]:
    """The checkpoints of the watches."""
    return (
        (kind.value, checkpoint.version, checkpoint.at_us, checkpoint.rules)
        for kind, checkpoint in changes.resumes.items()
    )


def _working(changes: Changes) -> tuple[tuple[str, dict[str, Any]], ...]:
    return (
        ("pod", changes.pods),
        ("departed", changes.departed),
        ("node", changes.nodes),
        *_by_part(changes).items(),
    )


def _by_part(changes: Changes) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for (part, key), document in changes.documents.items():
        found.setdefault(part, {})[key] = document
    return found
