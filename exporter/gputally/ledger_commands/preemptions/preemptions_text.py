"""Preemptions and other disruptions as text: a table for people, CSV and JSON."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, TextIO

from msgspec import structs

from gputally.ledger.records import Window
from gputally.ledger_commands.plain_text import printable, write_document, write_rows
from gputally.ledger_commands.report.report_text import Scope, times
from gputally.report.disruption_lines import DisruptionLine
from gputally.report.disruption_rows import PLACES, PreemptionRow, preemption_row

VERSION: Final = 1
"""Raised when a field of the JSON is removed or changes its meaning; new fields do not change it."""
_HEAD: Final = ("decided", "cause", "victim", "tier", "gpus", "by tier", "stop s", "replaced s", "lost GPU-h", "cost")


def write_preemptions(
    file: TextIO, lines: Sequence[DisruptionLine], scope: Scope, *, output: str, tiers_only: bool
) -> None:
    """Write them; with `tiers_only` without names of preemptors."""
    zone = scope.query.calendar.zone
    rows = [preemption_row(line, zone, tiers_only=tiers_only) for line in lines]
    if output == "json":
        write_document(
            file,
            {
                "version": VERSION,
                "cluster": scope.state.cluster,
                "window": times(scope.query.window, zone),
                "accounted": times(Window(scope.state.accounting_start_us, scope.state.accounted_us), zone),
                "where": {each.column: each.globs for each in scope.query.filters},
                "rows": rows,
            },
        )
    elif output == "csv":
        write_rows(file, PreemptionRow.__struct_fields__, map(_plain, rows), output="csv")
    else:
        file.write(f"Disrupted pods from {scope.period(scope.query.window)}{printable(scope.limits)}\n\n")
        if rows:
            write_rows(file, _HEAD, map(_cells, rows), output="table")
        file.write(f"\n{_total(rows)}\n" if rows else "none\n")


def _total(rows: Sequence[PreemptionRow]) -> str:
    taken = sum((row.gpus for row in rows), Decimal(0))
    doubtful = sum(not row.is_certain for row in rows)
    violating = sum(row.budget_violated is True for row in rows)
    text = f"{len(rows):,} pods with {taken:f} GPUs"
    text += f", {doubtful:,} of an uncertain cause (?)" if doubtful else ""
    return text + (f", {violating:,} against a disruption budget" if violating else "")


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
        _lost(row),
        _costs(row, places=2),
    )


def _lost(row: PreemptionRow) -> str:
    """With a mark at an upper bound."""
    if row.lost_gpu_hours is None:
        return ""
    return f"{'<' if row.is_lost_upper_bound else ''}{row.lost_gpu_hours:.2f}"


def _costs(row: PreemptionRow, *, places: int) -> str:
    return ", ".join(f"{cost:.{places}f} {currency}" for currency, cost in (row.lost_costs or {}).items())


def _plain(row: PreemptionRow) -> Sequence[object]:
    values = structs.asdict(row) | {"lost_costs": _costs(row, places=PLACES)}
    return [
        value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value for value in values.values()
    ]
