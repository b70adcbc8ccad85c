"""The working state of the accounting as rows: pods, nodes and other documents, counters, label values and watches."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gputally.accounting.changes import UNKNOWN, Changes
from gputally.ledger.sqlite.rows import Row, insert_or
from gputally.model.allocation import Segment, Terms
from gputally.model.history import grown
from gputally.model.node_record import NodeRecord
from gputally.model.pod_record import PodRecord

UPSERT_SERIES: Final = insert_or(8, "REPLACE INTO series")
INSERT_HISTORY: Final = insert_or(4, "REPLACE INTO histories")
_HEAD: Final = 8
"""Entries of a history that are stored in its document; most pods have fewer."""


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
