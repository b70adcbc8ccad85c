"""Writes answers: tables for people, Markdown, HTML, CSV and JSON.

Sections and records are read as they are written, so an answer may be longer than memory.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TextIO

from gputally.formatting.tables import Row, markdown, markdown_table, table_lines, write_document, write_rows
from gputally.model.printable import printable
from gputally.output.answer import Answer, Bar, Section
from gputally.output.html_writer import html_lines

_WIDTH: Final = 100


def write_answer(file: TextIO, answer: Answer, *, output: str) -> None:
    """Write the answer in one of the `FORMATS`. CSV has no totals, so that its columns can be summed."""
    if output == "json":
        write_document(file, answer.document())
    elif output == "csv":
        write_rows(file, answer.columns, answer.records, output="csv")
    elif output == "html":
        file.writelines(html_lines(answer))
    else:
        file.writelines(_separated(_markdown(answer) if output == "markdown" else _plain(answer)))


def _separated(blocks: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of the blocks, with an empty line between two."""
    for place, block in enumerate(blocks):
        if place:
            yield "\n"
        yield from block


def _plain(answer: Answer) -> Iterator[Iterable[str]]:
    if answer.heading:
        yield [f"{printable(answer.heading)}\n"]
    for section in answer.sections:
        yield from _plain_section(section)
    yield from ([f"{note}\n"] for note in answer.notes)


def _plain_section(section: Section) -> Iterator[Iterable[str]]:
    if section.title:
        yield [f"{printable(section.title)}\n", *(f"  {printable(each)}\n" for each in section.lines)]
    if section.sentences:
        yield map(_wrapped, section.sentences)
    if section.head:
        yield table_lines(*_drawn(section))
    for entry in section.entries:
        name = printable(f"{entry.severity.upper()} {entry.rule}: {entry.about}")
        yield [f"{name}\n", *(_wrapped(f"{name}: {fact}") for name, fact in entry.facts)]
    yield from ([f"{note}\n"] for note in section.notes)


def _drawn(section: Section) -> tuple[Sequence[str], Iterable[Row]]:
    """The head and the rows of a table with its bars, in which parts are indented."""
    if not section.bar_width:
        return section.head, section.rows
    rows = [
        [f"{'  ' * bar.is_part}{row[0]}", *row[1:], _characters(bar, section.bar_width)]
        for row, bar in zip(section.rows, section.bars, strict=False)
    ]
    return [*section.head, ""], [*rows, *([*row, ""] for row in section.rows[len(rows) :])]


def _characters(bar: Bar, width: int) -> str:
    begin, end = (round(width * at / 100) for at in (bar.begin, bar.begin + bar.length))
    return " " * begin + ("░" if bar.is_part else "█") * (end - begin)


def _wrapped(text: str) -> str:
    wrapped = textwrap.fill(
        printable(text),
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"{wrapped}\n"


def _markdown(answer: Answer) -> Iterator[Iterable[str]]:
    heading = answer.title if answer.is_about_apart else answer.heading
    if heading:
        yield [f"# {markdown(heading)}\n"]
    if answer.is_about_apart:
        yield [f"{markdown(answer.about)}\n"]
    for section in answer.sections:
        yield from _markdown_section(section)
    yield from ([f"{note}\n"] for note in answer.notes)


def _markdown_section(section: Section) -> Iterator[Iterable[str]]:
    if section.title:
        yield [f"## {markdown(section.title)}\n"]
    if listed := (*section.sentences, *section.lines):
        yield (f"- {markdown(each)}\n" for each in listed)
    if section.head:
        yield markdown_table(section.head, section.rows)
    for entry in section.entries:
        yield [f"### {entry.severity.capitalize()}: {markdown(entry.about)}\n"]
        yield [f"`{entry.rule}`\n"]
        yield (f"- {name}: {markdown(fact)}\n" for name, fact in entry.facts)
    yield from ([f"{note}\n"] for note in section.notes)
