"""The working state of the accounting: documents, counters, label values, watches, and PriorityClasses."""

import json
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gputally.accounting.changes import UNKNOWN, Changes
from gputally.ledger.tables.table import Row
from gputally.ledger.tables.waits import PRIORITY_CLASSES
from gputally.ledger.tables.working import HISTORIES, INTERRUPTIONS, KNOWN_VALUES, SERIES, WATCHES, WORKING
from gputally.model.allocation import Segment, Terms
from gputally.model.history import grown
from gputally.model.node_record import NodeRecord
from gputally.model.pod_record import PodRecord

_version_row: Final = attrgetter(*PRIORITY_CLASSES.fields)
DELETE_OUTDATED: Final = "DELETE FROM histories WHERE kind = ? AND uid = ? AND ordinal >= ?"
_HEAD: Final = 8
"""Entries of a history that are stored in its document; most pods have fewer."""


def series(changes: Changes) -> Iterator[Row]:
    """Changed counters; integers as text, since they outgrow 64 bits."""
    for (total, labels), s in changes.series.items():
        if s is not None:
            yield SERIES.new(
                family=total.value,
                labels=json.dumps(labels),
                created_us=s.created_us,
                a=str(s.a),
                b=str(s.b),
                floor=str(s.floor),
                floor_us=s.floor_us,
                shown_us=s.shown_us,
            )


def dropped_series(changes: Changes) -> Iterator[Row]:
    """Deleted counters."""
    return ((total.value, json.dumps(labels)) for (total, labels), s in changes.series.items() if s is None)


def known_values(changes: Changes) -> Iterator[Row]:
    """Changed label values, exported now or before."""
    for (label, value), each in changes.known_values.items():
        if each is not None:
            yield KNOWN_VALUES.new(label, value, grew_us=each.grew_us, evicted_us=each.evicted_us)


def forgotten(changes: Changes) -> Iterator[Row]:
    """Deleted label values."""
    return (value for value, each in changes.known_values.items() if each is None)


def working(changes: Changes) -> Iterator[Row]:
    """Changed working state; its documents have a bounded size."""
    encode = msgspec.json.Encoder().encode
    for kind, records in _working(changes):
        for uid, record in records.items():
            if record is not None:
                yield WORKING.new(kind, uid, encode(_short(record)))


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
                    yield HISTORIES.new(kind, uid, ordinal, encode(terms))


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
        WATCHES.new(kind.value, version=checkpoint.version, at_us=checkpoint.at_us, rules=checkpoint.rules)
        for kind, checkpoint in changes.resumes.items()
    )


def class_versions(changes: Changes) -> Iterator[Row]:
    """New and ended versions of PriorityClasses."""
    return map(_version_row, changes.priority_classes.values())


def interruptions(changes: Changes) -> Iterator[Row]:
    """Interruptions of watches."""
    return (INTERRUPTIONS.new(kind.value, from_us, to_us) for (kind, from_us), to_us in changes.interruptions.items())


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
