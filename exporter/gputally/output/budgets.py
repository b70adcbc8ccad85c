"""What is spent of budgets."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import structs

from gputally.formatting.times import instant
from gputally.ledger.records import LedgerState
from gputally.model.units import to_datetime
from gputally.output.answer import Answer, Section
from gputally.reports.budgets import BudgetRow

VERSION: Final = 1
"""Raised when a field of the JSON is removed or changes its meaning; new fields do not change it."""
_HEAD: Final = (
    *("budget", "period", "unit", "limit", "spent", "spent %", "elapsed %"),
    *("forecast", "lower", "upper", "exhausted on", "status"),
)


def budgets_answer(rows: Sequence[BudgetRow], state: LedgerState) -> Answer:
    """The rows, one for each budget."""
    since, until = to_datetime(state.accounting_start_us), to_datetime(state.accounted_us)
    about = f"accounted from {instant(since)} to {instant(until)}"
    head = {"version": VERSION, "cluster": state.cluster, "records_from": since, "accounted": until}
    return Answer(
        title="Budgets",
        about=f"{about[0].upper()}{about[1:]}",
        heading=f"Budgets, {about}",
        sections=[Section(head=_HEAD, rows=[_cells(row) for row in rows])],
        columns=BudgetRow.__struct_fields__,
        records=(list(map(_plain, structs.astuple(row))) for row in rows),
        document=lambda: head | {"budgets": [structs.asdict(row) for row in rows]},
    )


def _cells(row: BudgetRow) -> list[object]:
    return [
        *(row.budget, row.window, row.unit, row.limit, row.spent, row.spent_percent, row.elapsed_percent),
        *(row.forecast, row.forecast_lower, row.forecast_upper),
        f"{row.exhausted:%Y-%m-%d}" if row.exhausted else "",
        row.status.value,
    ]


def _plain(value: Any) -> object:  # noqa: ANN401 - any field of a row
    return value.isoformat() if isinstance(value, datetime) else value
