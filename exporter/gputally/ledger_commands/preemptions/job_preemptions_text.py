"""Preemptions of jobs as text: a table for people, CSV and JSON."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final, TextIO

from msgspec import structs

from gputally.ledger_commands.plain_text import write_document, write_rows
from gputally.ledger_commands.preemptions.preemptions_text import costs, document, lost, lost_costs, lost_total, plain
from gputally.ledger_commands.report.scope_text import Scope, write_notes
from gputally.model.printable import printable
from gputally.reports.job_preemptions import JobPreemption
from gputally.reports.preemption_records import JobPreemptionRow, record_row

_HEAD: Final = ("decided", "job", "tier", "pods", "gpus", "by tier", "permitted", "lost GPU-h", "cost", "advice")
_PERMITTED: Final = {True: "yes", False: "no", None: ""}


def write_job_preemptions(
    file: TextIO, found: Sequence[JobPreemption], scope: Scope, *, output: str, tiers_only: bool
) -> None:
    """Write them; with `tiers_only` without names and priorities of preemptors."""
    zone, now_us = scope.query.calendar.zone, scope.state.accounted_us
    rows = [record_row(each, zone, now_us=now_us, tiers_only=tiers_only) for each in found]
    if output == "json":
        write_document(file, document(rows, scope))
    elif output == "csv":
        write_rows(file, JobPreemptionRow.__struct_fields__, map(_plain, rows), output="csv")
    else:
        file.write(f"Preempted jobs from {printable(scope.about)}\n\n")
        if rows:
            write_rows(file, _HEAD, map(_cells, rows), output="table")
        lines = (line for each in found for line in each.victims)
        file.write(f"\n{_total(rows)}\n{lost_total(lines, scope)}" if rows else f"{scope.nothing}\n")
        write_notes(file, scope)


def _total(rows: Sequence[JobPreemptionRow]) -> str:
    taken = sum((row.gpus for row in rows), Decimal(0))
    pods = sum(len(row.pods) for row in rows)
    return f"preempted jobs: {len(rows):,}, pods: {pods:,}, GPUs: {taken:f}"


def _cells(row: JobPreemptionRow) -> Sequence[object]:
    return (
        f"{row.decided:%m-%d %H:%M:%S}",
        f"{row.namespace}/{row.job}",
        row.tier,
        len(row.pods),
        row.gpus,
        ", ".join(row.preemptor_tiers),
        _PERMITTED[row.is_permitted],
        lost(row),
        lost_costs(row),
        ", ".join(each.name for each in row.advice),
    )


def _plain(row: JobPreemptionRow) -> Sequence[object]:
    """Lists are separated by semicolons."""
    values = structs.asdict(row) | {
        "lost_costs": costs(row),
        "advice": [each.text for each in row.advice],
    }
    return ["; ".join(each) if isinstance(each, list) else plain(each) for each in values.values()]
