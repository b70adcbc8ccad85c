"""What a command answers, stated once for all formats, also of what an aggregator says of now."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from gputally.formatting.csv_cells import Row
from gputally.formatting.times import instant
from gputally.formatting.wrapping import Fact, Grid, Paragraph, Part, text_lines, width


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


def live_answer(
    title: str, parts: Iterable[Part], body: bytes, *, at: datetime, columns: Sequence[str], records: Iterable[Row]
) -> Answer:
    """The parts, which say what was so `at` a time, with the response of the API and its `records` for CSV."""
    found = list(parts)
    return Answer(
        title=title,
        about=f"As of {instant(at)}.",
        heading=title,
        sections=_sections(found),
        lines=text_lines(found, width=width()),
        columns=columns,
        records=records,
        document=lambda: iter([msgspec.json.format(body, indent=2).decode() + "\n"]),
    )


def _sections(parts: Iterable[Part]) -> Iterator[Section]:
    """A list of the facts between two texts or tables, each of which is a section."""
    facts = list[str]()
    for part in parts:
        if isinstance(part, Fact):
            text = part.text.removeprefix("- ")
            facts.append(f"{part.head}: {text}" if part.head else text)
            continue
        yield from [Section(lines=facts)] if facts else []
        facts = []
        match part:
            case Grid(rows, _, head):
                yield Section(title=head, head=rows[0], rows=rows[1:])
            case Paragraph(text) | str(text) if text:
                yield Section(paragraph=text)
    yield from [Section(lines=facts)] if facts else []
