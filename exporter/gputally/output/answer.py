"""What a command answers, stated once for all formats."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from msgspec import Struct

Row = Sequence[object]


class Bar(NamedTuple):
    """The bar of a row, in percent of the whole; that of a part of the row above is drawn in another colour."""

    length: Decimal
    begin: Decimal = Decimal()
    is_part: bool = False


class Entry(Struct, frozen=True, kw_only=True):
    """Something found: how severe it is, by which rule, about what, and facts with their names."""

    severity: str
    rule: str
    about: str
    facts: Sequence[tuple[str, str]]


class Section(Struct, frozen=True, kw_only=True):
    """A part of an answer: a title, a table whose last rows are totals, what was found, and notes below.

    Between title and table stand a `paragraph`, or `sentences`, which are wrapped, or `lines`; Markdown lists both. As
    text, lines and their table follow the title at once, and a section that `continues` follows the one above. Columns
    of text have at least these `widths`.

    The rows but totals have `bars`, which tables draw with `bar_width` characters, and not at all if that is 0.
    """

    title: str = ""
    paragraph: str = ""
    sentences: Sequence[str] = ()
    lines: Sequence[str] = ()
    head: Sequence[str] = ()
    rows: Sequence[Row] = ()
    totals: int = 0
    widths: Sequence[int] = ()
    bars: Sequence[Bar] = ()
    bar_width: int = 0
    entries: Sequence[Entry] = ()
    notes: Sequence[str] = ()
    continues: bool = False


class Answer(Struct, frozen=True, kw_only=True):
    """What a command says: sections and notes for people, records for CSV, and a document for JSON.

    Text and Markdown begin with the `heading`, if any, HTML with `title` and `about`, and so does Markdown if
    `is_about_apart`. `lines` are the whole text of an answer that is wrapped to a terminal. Only the parts of the
    chosen format are read. A document that may be longer than memory comes as lines.
    """

    title: str
    about: str
    heading: str = ""
    sections: Iterable[Section]
    columns: Sequence[str]
    records: Iterable[Row]
    document: Callable[[], Mapping[str, Any] | Iterator[str]]
    notes: Sequence[str] = ()
    lines: Iterable[str] = ()
    is_about_apart: bool = False
