"""Rows of the file: their types, and records with their columns."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct, convert

from gputally.ledger.tables import table

Row = table.Row
Rows = Callable[[str, Mapping[str, Any]], Sequence[Row]]
"""Runs a statement with these parameters, in one transaction."""
Record = TypeVar("Record", bound=Struct)


def record_of(type_: type[Record], row: Row) -> Record:
    """A record whose fields are the columns of the row."""
    return convert(dict(zip(type_.__struct_fields__, row, strict=True)), type_, strict=False)


def records_of(type_: type[Record], rows: Iterable[Row]) -> Iterator[Record]:
    """Records whose fields are the columns of the rows."""
    return (record_of(type_, row) for row in rows)
