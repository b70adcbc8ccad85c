"""Shows what is spent of budgets: tables for people, Markdown, CSV and JSON."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, TextIO

from msgspec import structs

from gputally.formatting.tables import markdown_table, write_document, write_rows
from gputally.formatting.times import instant
from gputally.ledger.records import LedgerState
from gputally.model.units import to_datetime
from gputally.reports.budgets import BudgetRow

VERSION: Final = 1
"""Raised when a field of the JSON is removed or changes its meaning; new fields do not change it."""
PLACES: Final = {"table": 2, "markdown": 2, "csv": 6, "json": 6}
"""The usual decimals of amounts, by format."""
_HEAD: Final = (
    *("budget", "period", "unit", "limit", "spent", "spent %", "elapsed %"),
    *("forecast", "lower", "upper", "exhausted on", "status"),
)


def write_budgets(file: TextIO, rows: Sequence[BudgetRow], state: LedgerState, *, output: str) -> None:
    """Write the rows in this format."""
    accounted = to_datetime(state.accounted_us)
    if output == "json":
        documents = [structs.asdict(row) for row in rows]
        document = {
            "version": VERSION,
            "cluster": state.cluster,
            "records_from": to_datetime(state.accounting_start_us),
            "accounted": accounted,
            "budgets": documents,
        }
        write_document(file, document)
    elif output == "csv":
        columns = BudgetRow.__struct_fields__
        write_rows(file, columns, ([_plain(getattr(row, name)) for name in columns] for row in rows), output="csv")
    else:
        is_markdown = output == "markdown"
        since = instant(to_datetime(state.accounting_start_us))
        file.write(f"{'# ' if is_markdown else ''}Budgets, accounted from {since} to {instant(accounted)}\n\n")
        cells = [_cells(row) for row in rows]
        if is_markdown:
            file.writelines(markdown_table(_HEAD, cells))
        else:
            write_rows(file, _HEAD, cells, output="table")


def _cells(row: BudgetRow) -> list[object]:
    return [
        *(row.budget, row.window, row.unit, row.limit, row.spent, row.spent_percent, row.elapsed_percent),
        *(row.forecast, row.forecast_lower, row.forecast_upper),
        f"{row.exhausted:%Y-%m-%d}" if row.exhausted else "",
        row.status.value,
    ]


def _plain(value: Any) -> object:  # noqa: ANN401 - any field of a row
    return value.isoformat() if isinstance(value, datetime) else value
