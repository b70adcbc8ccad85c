"""`gputally ledger info`, `check` and `query`."""

import csv
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from gputally.errors import LedgerError
from gputally.ledger.open import path_of
from gputally.ledger.sqlite import integrity
from gputally.ledger.sqlite.maintenance.facts import LedgerFacts, facts_of
from gputally.ledger.sqlite.maintenance.read_query import QueryResult, read_query
from gputally.maintenance.progress_line import ProgressLine
from gputally.model.units import US_PER_SECOND

VERSION: Final = 1
"""Of the JSON documents."""
_WIDTHS_FROM: Final = 1_000
"""The rows that decide how wide the columns of a table are; later ones may be wider."""
_MIB: Final = 1 << 20


def inspect(parsed: Namespace) -> int:
    """Run the chosen command. Raises: LedgerError."""
    path = path_of(parsed.ledger)
    if parsed.what == "info":
        _show_info(facts_of(path), as_json=parsed.output == "json")
    elif parsed.what == "check":
        _check(path, as_json=parsed.output == "json")
    else:
        sql = sys.stdin.read() if parsed.sql == "-" else parsed.sql
        with read_query(path, sql, timeout_s=parsed.timeout) as result:
            _PRINTED[parsed.output](result)
    return 0


def _show_info(facts: LedgerFacts, *, as_json: bool) -> None:
    if as_json:
        _print_json({"version": VERSION, **msgspec.to_builtins(facts)})
        return
    now_us = time.time_ns() // 1000
    writer = {True: "yes", False: "no", None: "unknown"}[facts.is_open]
    lines = {
        "ledger": facts.path,
        "cluster": facts.cluster or "none yet",
        "schema": facts.schema,
        "written by a process now": writer,
        "accounting since": _moment(facts.accounting_start_us),
        "accounted until": f"{_moment(facts.accounted_us)}{_age(facts.accounted_us, now_us)}",
        "file": f"{facts.file_bytes / _MIB:,.1f} MiB",
        "write-ahead log": f"{facts.wal_bytes / _MIB:,.1f} MiB",
        "free on its disk": f"{facts.free_bytes / _MIB:,.0f} MiB",
        **{name.replace("_", " "): f"{count:,}" for name, count in facts.rows.items()},
        "backups beside it": ", ".join(facts.backups) or "none",
    }
    for name, value in lines.items():
        sys.stdout.write(f"{name:25} {value}\n")


def _check(path: Path, *, as_json: bool) -> None:
    """Raises: LedgerDamaged with the first damage."""
    facts, began = facts_of(path), time.monotonic()
    with ProgressLine() as progress:
        for number, _ in enumerate(integrity.slices(path), start=1):
            progress.show(f"{number:,} parts checked")
    seconds = time.monotonic() - began
    if as_json:
        _print_json({"version": VERSION, "path": str(path), "rows": dict(facts.rows), "seconds": round(seconds, 3)})
    else:
        sys.stdout.write(f"{path}: no damage in {sum(facts.rows.values()):,} rows, {seconds:.1f} s\n")


def _moment(us: int | None) -> str:
    if us is None:
        return "never"
    return datetime.fromtimestamp(us // US_PER_SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _age(us: int | None, now_us: int) -> str:
    return "" if us is None else f", {max(0, now_us - us) // US_PER_SECOND:,} s ago"


def _print_json(document: object) -> None:
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document)) + b"\n")


def _print_table(result: QueryResult) -> None:
    first = [list(map(_text, row)) for row in islice(result.rows, _WIDTHS_FROM)]
    widths = [max(map(len, column)) for column in zip(result.columns, *first, strict=True)]
    _print_lines([result.columns, ["-" * width for width in widths], *first], widths)
    _print_lines((list(map(_text, row)) for row in result.rows), widths)


def _print_lines(rows: Iterable[Sequence[str]], widths: Sequence[int]) -> None:
    for row in rows:
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _text(value: object) -> str:
    """As SQL literals: NULL for None, X'...' for bytes."""
    if value is None:
        return "NULL"
    return f"X'{value.hex()}'" if isinstance(value, bytes) else str(value)


def _print_csv(result: QueryResult) -> None:
    """NULL is an empty field."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows([_plain(value) for value in row] for row in result.rows)


def _print_json_rows(result: QueryResult) -> None:
    """A list of objects, written row by row."""
    if len(set(result.columns)) < len(result.columns):
        raise LedgerError("two columns of the query have the same name; rename one with AS for JSON output")
    separator = b"["
    for row in result.rows:
        document = dict(zip(result.columns, map(_plain, row), strict=True))
        sys.stdout.buffer.write(separator + msgspec.json.encode(document))
        separator = b",\n "
    sys.stdout.buffer.write(b"]\n" if separator != b"[" else b"[]\n")


def _plain(value: Any) -> Any:  # noqa: ANN401 - a value of SQLite
    return value.hex() if isinstance(value, bytes) else value


_PRINTED: Final = {"table": _print_table, "csv": _print_csv, "json": _print_json_rows}
