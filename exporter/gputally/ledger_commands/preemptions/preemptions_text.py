"""Preemptions and other disruptions as text: a table for people, CSV and JSON."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TextIO

from msgspec import Struct, structs

from gputally.ledger_commands.plain_text import write_document, write_rows
from gputally.ledger_commands.report.report_text import Scope, document_head, write_notes
from gputally.model.printable import printable
from gputally.model.units import GPU_HOUR
from gputally.report.disruption_lines import DisruptionLine
from gputally.report.disruption_rows import PLACES, PreemptionRow, preemption_row
from gputally.report.job_preemptions.job_preemption import total_loss
from gputally.report.job_preemptions.record_rows import JobPreemptionRow
from gputally.report.preemptions.preemption_totals import TierTotal, tier_totals
from gputally.report.rounding import decimal_of

VERSION: Final = 1
"""Raised when a field of the JSON is removed or changes its meaning; new fields do not change it."""
_HEAD: Final = ("decided", "cause", "victim", "tier", "gpus", "by tier", "stop s", "replaced s", "lost GPU-h", "cost")

_TOTAL_HEAD: Final = ("by tier", "pods", "gpus", "bought GPU-h", "lost GPU-h", "stalled GPU-h", "stranded GPU-h")


def write_preemptions(
    file: TextIO, lines: Sequence[DisruptionLine], scope: Scope, *, output: str, tiers_only: bool
) -> None:
    """Write them; with `tiers_only` without names of preemptors."""
    zone = scope.query.calendar.zone
    rows = [preemption_row(line, zone, tiers_only=tiers_only) for line in lines]
    totals = tier_totals(lines, tiers_only=tiers_only)
    if output == "json":
        write_document(file, document(rows, scope) | {"totals": totals})
    elif output == "csv":
        write_rows(file, PreemptionRow.__struct_fields__, map(_plain, rows), output="csv")
    else:
        file.write(f"Disrupted pods from {scope.period(scope.query.window)}{printable(scope.limits)}\n\n")
        if rows:
            write_rows(file, _HEAD, map(_cells, rows), output="table")
        file.write(f"\n{_total(rows)}\n{lost_total(lines)}" if rows else f"{scope.nothing}\n")
        if totals:
            file.write("\n")
            write_rows(file, _TOTAL_HEAD, map(_total_cells, totals), output="table")
        write_notes(file, scope)


def document(rows: Sequence[Struct], scope: Scope) -> dict[str, Any]:
    """The document with these rows."""
    return document_head(scope, version=VERSION) | {"rows": rows}


def _total(rows: Sequence[PreemptionRow]) -> str:
    taken = sum((row.gpus for row in rows), Decimal(0))
    doubtful = sum(not row.is_certain for row in rows)
    violating = sum(row.budget_violated is True for row in rows)
    text = f"{len(rows):,} pods with {taken:f} GPUs"
    text += f", {doubtful:,} of an uncertain cause (?)" if doubtful else ""
    return text + (f", {violating:,} against a disruption budget" if violating else "")


def lost_total(lines: Iterable[DisruptionLine]) -> str:
    """What all of them lost, and would have lost with other checkpoint intervals; "" if none of it is known."""
    known = [line.lost for line in lines if line.lost]
    if not known:
        return ""
    loss = total_loss(known)
    amounts = loss.gpu_time, *(amount for _, amount in sorted(loss.at_intervals.items()))
    total, at_10m, at_30m, at_1h = (f"{decimal_of(Fraction(each, GPU_HOUR), 2):.2f}" for each in amounts)
    lost_hours = f"{'up to ' if loss.is_upper_bound else ''}{total} GPU-h"
    return f"lost {lost_hours}; with checkpoints every hour {at_1h}, every 30 min {at_30m}, every 10 min {at_10m}\n"


def _total_cells(total: TierTotal) -> Sequence[object]:
    bought = "" if total.bought_gpu_hours is None else f"{total.bought_gpu_hours:.2f}"
    others = (total.lost_gpu_hours, total.stalled_gpu_hours, total.stranded_gpu_hours)
    amounts = (bought, *(f"{each:.2f}" for each in others))
    return total.preemptor_tier, total.preemptions, total.preempted_gpus, *amounts


def _cells(row: PreemptionRow) -> Sequence[object]:
    return (
        f"{row.decided:%m-%d %H:%M:%S}",
        row.cause + ("" if row.is_certain else "?"),
        f"{row.namespace}/{row.pod}",
        row.tier,
        row.gpus,
        row.preemptor_tier or "",
        row.stop_seconds,
        row.replace_seconds,
        lost(row),
        costs(row, places=2),
    )


def lost(row: PreemptionRow | JobPreemptionRow) -> str:
    """Lost GPU-hours, with a mark at an upper bound."""
    if row.lost_gpu_hours is None:
        return ""
    return f"{'<' if row.is_lost_upper_bound else ''}{row.lost_gpu_hours:.2f}"


def costs(row: PreemptionRow | JobPreemptionRow, *, places: int) -> str:
    """The costs of lost work."""
    return ", ".join(f"{cost:.{places}f} {currency}" for currency, cost in (row.lost_costs or {}).items())


def _plain(row: PreemptionRow) -> Sequence[object]:
    values = structs.asdict(row) | {"lost_costs": costs(row, places=PLACES)}
    return list(map(plain, values.values()))


def plain(value: object) -> object:
    """A value of a row as one of CSV."""
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
