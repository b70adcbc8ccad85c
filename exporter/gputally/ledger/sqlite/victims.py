"""Victims as rows: pods that lost their GPUs involuntarily, and for whom they were preempted."""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from msgspec import convert

from gputally.ledger.sqlite.rows import Rows
from gputally.ledger.tables.statements import listed
from gputally.ledger.tables.victims import OF_PREEMPTION, OF_PREEMPTOR, OF_VICTIM, VICTIM_COLUMNS
from gputally.model.disruptions import Cause, VictimRecord

_SELECT: Final = f"SELECT {listed(VICTIM_COLUMNS)} FROM victims WHERE "  # noqa: S608 (names of columns)
_IN_ORDER: Final = " ORDER BY decided_us, victim_uid"
DECIDED: Final = "decided_us >= :start AND decided_us < :end AND cause IN (SELECT value FROM json_each(:causes))"
"""The victims of disruptions for the :causes (JSON) that were decided in the window [:start, :end)."""
TOGETHER: Final = "job_preemption != '' AND job_preemption IN (SELECT value FROM json_each(:ids))"
"""The victims of the preemptions of jobs with these :ids (JSON)."""
_OF_JOB: Final = "(:job = '' OR (job = :job AND victim_namespace = :namespace))"


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
    return (_victim_of(dict(zip(VICTIM_COLUMNS, row, strict=True))) for row in found)


def _victim_of(row: Mapping[str, Any]) -> VictimRecord:
    own = {name: row[name] for name in OF_VICTIM}
    by = None if row["preemptor_tier"] is None else _preemption_of(row)
    return convert(own | {"by": by}, VictimRecord, strict=False)


def _preemption_of(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: row[name] for name in OF_PREEMPTION if row[name] is not None}
    if pods := row["preemptor_pods"]:
        found["preemptor_pods"] = json.loads(pods)
    return found if row["preemptor_uid"] is None else found | {"preemptor": _preemptor_of(row)}


def _preemptor_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """NULL is the default of a field, except that the quantity of a workload may not be known."""
    found = {field: row[column] for column, field in OF_PREEMPTOR.items() if row[column] is not None}
    if "tenant" in found:
        found["tier"] = row["preemptor_tier"]
    return found | ({"quantity": row["preemptor_quantity"]} if "kind" in found else {})
