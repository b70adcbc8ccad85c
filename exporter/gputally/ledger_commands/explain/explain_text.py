"""Explanations as text: a table for people, CSV and JSON."""

from collections.abc import Iterator
from typing import Any, Final, TextIO

from msgspec import json, structs

from gputally.ledger.records import Window
from gputally.ledger_commands.explain.explain_rows import (
    ExplainRow,
    Explanation,
    rows_of_explanation,
    totals_of,
    uncharged,
)
from gputally.ledger_commands.explain.explain_table import explanation_lines
from gputally.ledger_commands.plain_text import write_rows
from gputally.ledger_commands.report.scope_text import document_head, times

VERSION: Final = 1
"""Raised when a field of the JSON is removed or changes its meaning; new fields do not change it."""
_COLUMNS: Final = ExplainRow.__struct_encode_fields__
_ENCODER: Final = json.Encoder(decimal_format="number")


def write_explanation(file: TextIO, explanation: Explanation, *, output: str) -> None:
    """Write it in bounded memory: pods are printed as they are read."""
    if output == "csv":
        rows = (structs.astuple(each) for each in rows_of_explanation(explanation))
        write_rows(file, _COLUMNS, rows, output="csv")
    elif output == "json":
        file.writelines(_document(explanation))
    else:
        file.writelines(explanation_lines(explanation))


def _document(explanation: Explanation) -> Iterator[str]:
    """One JSON document with a line for each row; what is known only at the end follows the rows."""
    head = document_head(explanation.scope, version=VERSION)
    del head["unmatched"]  # not known yet
    yield f'{{\n  {_fields(head)},\n  "rows": ['
    separator = "\n    "
    for row in rows_of_explanation(explanation):
        yield separator + _ENCODER.encode(row).decode()
        separator = ",\n    "
    yield f"\n  ],\n  {_fields(_tail(explanation))}\n}}\n"


def _fields(values: dict[str, Any]) -> str:
    return ",\n  ".join(f'"{name}": {_ENCODER.encode(value).decode()}' for name, value in values.items())


def _tail(explanation: Explanation) -> dict[str, Any]:
    zone = explanation.scope.query.calendar.zone
    gaps = (
        {"subject": each.subject.value, "name": each.name, **times(Window(each.start_us, each.end_us), zone)}
        for each in explanation.gaps
    )
    return {
        "totals": list(totals_of(explanation)),
        "pods": explanation.sums.pods,
        "unobserved_ends": explanation.sums.unobserved,
        "uncharged_gpu_hours": uncharged(explanation),
        "gaps": list(gaps),
        "unmatched": [] if explanation.sums.pods else explanation.unmatched(),
    }
