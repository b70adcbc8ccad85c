"""The tables and views of a ledger, as a table in docs/accounting.md."""

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final

from gputally.ledger.sqlite.schema import create, views
from gputally.ledger.tables.schema import TABLES

_VIEW: Final = re.compile(r"((?:-- .*\n)+)CREATE VIEW (\w+) AS")


def document() -> str:
    """A Markdown table of all tables, and then of all views."""
    rows = "".join(f"| `{name}` | {text} | {columns} |\n" for name, text, columns in (*_tables(), *_views()))
    return f"| Table | A row is | Columns |\n| --- | --- | --- |\n{rows}"


def _tables() -> Iterator[tuple[str, str, str]]:
    for table in TABLES:
        names = (table.number, *table.fields) if table.number else table.fields
        yield table.name, table.text.replace("None", "NULL"), _code(names)


def _views() -> Iterator[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as ledger:
        create(ledger)
        for comment, name in _VIEW.findall(views()):
            columns = [column for (column,) in ledger.execute("SELECT name FROM pragma_table_info(?)", (name,))]
            text = " ".join(comment.replace("--", "").split())
            yield name, f"A view: {text[0].lower()}{text[1:]}", _code(columns)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
