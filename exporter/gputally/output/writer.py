"""Writes answers: tables for people, Markdown, HTML, CSV and JSON.

Sections and records are read as they are written, so an answer may be longer than memory.
"""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TextIO

from gputally.formatting.tables import markdown, markdown_table, table_lines, write_document, write_rows
from gputally.model.printable import printable
from gputally.output.answer import Answer, Bar, Row, Section
from gputally.output.html_writer import html_lines

_WIDTH: Final = 100


class _Block(NamedTuple):
    """Lines with an empty line before them, unless they continue the block above."""

    lines: Iterable[str]
    continues: bool = False


def write_answer(file: TextIO, answer: Answer, *, output: str) -> None:
    """Write the answer in one of the `FORMATS`. CSV has no totals, so that its columns can be summed."""
    if output == "json":
        document = answer.document()
        if isinstance(document, Mapping):
            write_document(file, document)
        else:
            file.writelines(document)
    elif output == "csv":
        write_rows(file, answer.columns, answer.records, output="csv")
    elif output == "html":
        file.writelines(html_lines(answer))
    else:
        file.writelines(_separated(_markdown(answer) if output == "markdown" else _plain(answer)))


def _separated(blocks: Iterable[_Block]) -> Iterator[str]:
    """The lines of the blocks, with an empty line between two."""
    for place, block in enumerate(blocks):
        if place and not block.continues:
            yield "\n"
        yield from block.lines


def _paragraphs(texts: Iterable[str]) -> Iterator[_Block]:
    return (_Block([f"{text}\n"]) for text in texts)


def _plain(answer: Answer) -> Iterator[_Block]:
    if answer.lines:
        yield _Block(f"{line}\n" for line in answer.lines)
        return
    yield from _paragraphs([printable(answer.heading)] if answer.heading else [])
    for section in answer.sections:
        yield from _plain_section(section)
    yield from _paragraphs(answer.notes)


def _plain_section(section: Section) -> Iterator[_Block]:
    table = table_lines(*_drawn(section), widths=section.widths) if section.head else ()
    title = [f"{printable(each)}\n" for each in (section.title, section.paragraph) if each]
    if section.lines:
        lines = (f"  {printable(each)}\n" for each in section.lines)
        yield _Block(chain(title, lines, table), continues=section.continues)
    else:
        yield from (_Block(each) for each in (title, [*map(_wrapped, section.sentences)], table) if each)
    for entry in section.entries:
        name = printable(f"{entry.severity.upper()} {entry.rule}: {entry.about}")
        yield _Block([f"{name}\n", *(_wrapped(f"{name}: {fact}") for name, fact in entry.facts)])
    yield from _paragraphs(section.notes)


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


def _markdown(answer: Answer) -> Iterator[_Block]:
    heading = answer.title if answer.is_about_apart else answer.heading
    yield from _paragraphs([f"# {markdown(heading)}"] if heading else [])
    yield from _paragraphs([markdown(answer.about)] if answer.is_about_apart else [])
    for section in answer.sections:
        yield from _markdown_section(section)
    yield from _paragraphs(answer.notes)


def _markdown_section(section: Section) -> Iterator[_Block]:
    yield from _paragraphs([f"## {markdown(section.title)}"] if section.title else [])
    yield from _paragraphs([markdown(section.paragraph)] if section.paragraph else [])
    if listed := (*section.sentences, *section.lines):
        yield _Block(f"- {markdown(each)}\n" for each in listed)
    if section.head:
        yield _Block(markdown_table(section.head, section.rows))
    for entry in section.entries:
        yield from _paragraphs([f"### {entry.severity.capitalize()}: {markdown(entry.about)}", f"`{entry.rule}`"])
        yield _Block(f"- {name}: {markdown(fact)}\n" for name, fact in entry.facts)
    yield from _paragraphs(section.notes)
