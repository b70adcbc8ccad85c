"""Victims as rows: pods that lost their GPUs involuntarily, and for whom they were preempted."""

import json
from collections.abc import Collection, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec import convert

from gputally.ledger.sqlite.rows import Row, Rows, insert_or
from gputally.model.disruptions import Cause, Preemption, Preemptor, VictimRecord

if TYPE_CHECKING:  # of the writer alone
    from gputally.accounting.changes import Changes

_OWN: Final = tuple(name for name in VictimRecord.__struct_fields__ if name != "by")
_BY: Final = ("preemptor_tier", "victim_priority", "victim_class", "queue_rule")
_PREEMPTOR: Final = {
    "is_inferred": "is_inferred",
    "preemptor_uid": "uid",
    "preemptor_namespace": "namespace",
    "preemptor_name": "name",
    "preemptor_tenant": "tenant",
    "preemptor_class": "class_name",
    "preemptor_priority": "priority",
    "preemptor_may_preempt": "may_preempt",
    "preemptor_kind": "kind",
    "preemptor_quantity": "quantity",
}
"""The fields of the preemptor by column."""
_COLUMNS: Final = (*_OWN, *_BY, *_PREEMPTOR, "preemptor_pods")
_NO_PREEMPTION: Final = (None,) * (len(_COLUMNS) - len(_OWN))
_own, _by, _of_preemptor = attrgetter(*_OWN), attrgetter(*_BY), attrgetter(*_PREEMPTOR.values())
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM victims WHERE "  # noqa: S608 (names of columns)
_IN_ORDER: Final = " ORDER BY decided_us, victim_uid"
INSERT_VICTIM: Final = insert_or(1 + len(_COLUMNS), f"REPLACE INTO victims (recorded_us, {', '.join(_COLUMNS)})")
DELETE_VICTIM: Final = "DELETE FROM victims WHERE victim_uid = ?"
DECIDED: Final = "decided_us >= :start AND decided_us < :end AND cause IN (SELECT value FROM json_each(:causes))"
"""The victims of disruptions for the :causes (JSON) that were decided in the window [:start, :end)."""
TOGETHER: Final = "job_preemption != '' AND job_preemption IN (SELECT value FROM json_each(:ids))"
"""The victims of the preemptions of jobs with these :ids (JSON)."""
_OF_JOB: Final = "(:job = '' OR (job = :job AND victim_namespace = :namespace))"


def victims(changes: "Changes") -> Iterator[Row]:
    """Victims as last known."""
    for each in filter(None, changes.victims.values()):
        yield changes.at_us, *_own(each), *_preemption(each.by)


def withdrawn_victims(changes: "Changes") -> Iterator[Row]:
    """Pods that were no victims after all."""
    return ((uid,) for uid, each in changes.victims.items() if each is None)


def _preemption(by: Preemption | None) -> Row:
    """The columns of a preemption that is counted, else NULL."""
    if by is None or not by.preemptor_tier:
        return _NO_PREEMPTION
    pods = by.preemptor_pods if by.workload and by.workload.uid else None  # KAI names no UID: its pods are not known
    return *_by(by), *_preemptor(by.preemptor), None if pods is None else json.dumps(pods)


def _preemptor(of: Preemptor | None) -> Row:
    """NULL while it is not known; of a pod, what only a workload has is NULL."""
    if of is None:
        return False, *[None] * (len(_PREEMPTOR) - 1)
    unknown: list[str] = [] if of.tier else ["preemptor_tenant"]
    if of.priority is None:
        unknown += ["preemptor_class", "preemptor_may_preempt"]
    if not of.kind:
        unknown += ["preemptor_kind", "preemptor_quantity"]
    known = zip(_PREEMPTOR, _of_preemptor(of), strict=True)
    return tuple([None if column in unknown else value for column, value in known])


def read_disruptions(
    rows: Rows, bounds: Mapping[str, Any], causes: Collection[Cause], of_job: tuple[str, str]
) -> Iterator[VictimRecord]:
    """See `LedgerReader.disruptions`; `bounds` are those of the window."""
    values = {**bounds, "causes": json.dumps([*causes]), "namespace": of_job[0], "job": of_job[1]}
    return _read(rows, f"is_disruption AND {DECIDED} AND {_OF_JOB}", values)


def read_preemptions(rows: Rows, bounds: Mapping[str, Any]) -> Iterator[VictimRecord]:
    """See `LedgerReader.preemptions`; `bounds` are those of the window."""
    return _read(rows, "preemptor_tier IS NOT NULL AND decided_us >= :start AND decided_us < :end", bounds)


def read_together(rows: Rows, ids: Mapping[str, Any]) -> Iterator[VictimRecord]:
    """The victims of the preemptions of jobs with these IDs."""
    return _read(rows, f"is_disruption AND {TOGETHER}", ids)


def _read(rows: Rows, condition: str, values: Mapping[str, Any]) -> Iterator[VictimRecord]:
    found = rows(f"{_SELECT}{condition}{_IN_ORDER}", values)
    return (_victim_of(dict(zip(_COLUMNS, row, strict=True))) for row in found)


def _victim_of(row: Mapping[str, Any]) -> VictimRecord:
    own = {name: row[name] for name in _OWN}
    by = None if row["preemptor_tier"] is None else _preemption_of(row)
    return convert(own | {"by": by}, VictimRecord, strict=False)


def _preemption_of(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: row[name] for name in _BY if row[name] is not None}
    if pods := row["preemptor_pods"]:
        found["preemptor_pods"] = json.loads(pods)
    return found if row["preemptor_uid"] is None else found | {"preemptor": _preemptor_of(row)}


def _preemptor_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """NULL is the default of a field, except that the quantity of a workload may not be known."""
    found = {field: row[column] for column, field in _PREEMPTOR.items() if row[column] is not None}
    if "tenant" in found:
        found["tier"] = row["preemptor_tier"]
    return found | ({"quantity": row["preemptor_quantity"]} if "kind" in found else {})
