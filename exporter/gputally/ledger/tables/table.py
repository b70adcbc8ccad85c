"""How a table of a ledger is declared, whatever database has it."""

from collections.abc import Callable
from enum import StrEnum
from functools import cached_property
from types import NoneType
from typing import Annotated, Any, Final, Generic, NamedTuple, ParamSpec, get_args, get_origin, get_type_hints

P = ParamSpec("P")
Row = tuple[Any, ...]
"""Values of columns."""


class ColumnType(StrEnum):
    """The type of a column; each database has a name for it."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    """An integer of at most 64 bits."""
    BIG_INTEGER = "big integer"
    """Rows have its decimal digits."""
    TEXT = "text"
    BYTES = "bytes"


BigInteger = Annotated[str, ColumnType.BIG_INTEGER]
"""Digits of an integer that may outgrow 64 bits."""
TextNumber = int
"""The number of a row of `texts`."""
_TYPES: Final = {
    bool: ColumnType.BOOLEAN,
    int: ColumnType.INTEGER,
    str: ColumnType.TEXT,
    bytes: ColumnType.BYTES,
}


class Column(NamedTuple):
    """A column of a table."""

    name: str
    type: ColumnType
    nullable: bool


class Index(NamedTuple):
    """An index, which with `where` has only the rows that meet this condition."""

    name: str
    columns: tuple[str, ...]
    where: str = ""


class Table(Generic[P]):
    """A table, whose columns are the fields of the Struct `row`, which also says what a row is.

    Rows are unique by `key`. With `number`, the ledger numbers them in a column of this name, which comes first.
    """

    def __init__(
        self,
        name: str,
        row: Callable[P, object],
        *,
        key: tuple[str, ...],
        number: str = "",
        indexes: tuple[Index, ...] = (),
        has_large_rows: bool = False,
    ) -> None:
        own = tuple(_column(name, hint) for name, hint in get_type_hints(row, include_extras=True).items())
        self.name = name
        self.key = key
        self.number = number
        self.indexes = indexes
        self.has_large_rows = has_large_rows
        """Rows of many kB, which slow down a search among them."""
        self.columns = (Column(number, ColumnType.INTEGER, nullable=False), *own) if number else own
        """All columns, in order."""
        self.fields = tuple(column.name for column in own)
        """The columns that a new row has values for, in the order of these values."""
        self.rest = tuple(name for name in self.fields if name not in key)
        """The fields that are no part of the key."""
        self.text = " ".join((row.__doc__ or "").split())
        """What a row is, in one line."""

    @cached_property
    def new(self) -> Callable[P, Row]:
        """Makes a new row, a plain tuple, from the arguments of `row`: with many columns, by position is faster."""
        names = ", ".join(self.fields)
        made: Callable[P, Row] = eval(f"lambda {names}: ({names},)")  # noqa: S307 (names of fields; a NamedTuple is made likewise, but bound more slowly)
        return made


AnyTable = Table[...]


def _column(name: str, hint: object) -> Column:
    if get_origin(hint) is Annotated:
        _, type_ = get_args(hint)
        return Column(name, type_, nullable=False)
    options = get_args(hint) or (hint,)
    [plain] = (option for option in options if option is not NoneType)
    type_ = next(found for base, found in _TYPES.items() if issubclass(plain, base))
    return Column(name, type_, nullable=NoneType in options)
