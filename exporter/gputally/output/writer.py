"""Writes answers: tables for people, Markdown, HTML, CSV and JSON.

Sections and records are read as they are written, so an answer may be longer than memory. A file of HTML has its style
and needs nothing else.
"""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from html import escape
from itertools import chain, islice
from typing import Final, NamedTuple, TextIO

from gputally.formatting.csv_cells import Row
from gputally.formatting.tables import markdown, markdown_table, table_lines, write_document, write_rows
from gputally.model.printable import printable
from gputally.output.answer import Answer, Bar, Section


def html_lines(answer: Answer) -> Iterator[str]:
    """The page of an answer; all its texts are escaped."""
    from gputally.formatting.html_pages import PAGE_END, page_start  # noqa: PLC0415 - the style, for pages alone

    yield page_start(answer.title)
    yield f"<p>{_text(answer.about)}</p>\n"
    for section in answer.sections:
        yield from _html_section(section)
    yield from (f"<p>{_text(note)}</p>\n" for note in answer.notes)
    yield PAGE_END


def _html_section(section: Section) -> Iterator[str]:
    listed = (*section.sentences, *section.lines)
    is_caption = section.head and not (listed or section.paragraph)
    if section.title and not is_caption:
        yield f"<h2>{_text(section.title)}</h2>\n"
    if section.paragraph:
        yield f"<p>{_text(section.paragraph)}</p>\n"
    if listed:
        yield f"<ul>\n{''.join(f'<li>{_text(each)}</li>{chr(10)}' for each in listed)}</ul>\n"
    if section.head:
        yield from _html_table(section, caption=section.title if is_caption else "")
    for entry in section.entries:
        facts = "".join(f"<dt>{_text(name)}</dt><dd>{_text(fact)}</dd>" for name, fact in entry.facts)
        yield (
            f'<article class="{entry.severity}">\n<h3>{_text(entry.severity.capitalize())}: {_text(entry.about)}</h3>\n'
            f"<p><code>{_text(entry.rule)}</code></p>\n<dl>{facts}</dl>\n</article>\n"
        )
    if section.notes:
        yield f"<p>{' '.join(map(_text, section.notes))}</p>\n"


def _html_table(section: Section, *, caption: str) -> Iterator[str]:
    numeric = [isinstance(cell, Decimal | int) for row in section.rows[-1:] for cell in row]
    classes = [' class="number"' if each else "" for each in numeric or [False] * len(section.head)]
    heads = "".join(
        f'<th scope="col"{style}>{_text(text)}</th>' for text, style in zip(section.head, classes, strict=True)
    )
    yield "<table>\n"
    yield f"<caption>{_text(caption)}</caption>\n" if caption else ""
    yield f"<thead><tr>{heads}{'<th></th>' if section.bars else ''}</tr></thead>\n<tbody>\n"
    rows = (_html_row(section, place, classes) for place in range(len(section.rows)))
    yield from islice(rows, len(section.rows) - section.totals)
    yield "</tbody>\n"
    yield f"<tfoot>\n{''.join(rows)}</tfoot>\n" if section.totals else ""
    yield "</table>\n"


def _html_row(section: Section, place: int, classes: Sequence[str]) -> str:
    row = section.rows[place]
    cells = "".join(f"<td{style}>{_text(cell)}</td>" for cell, style in zip(row, classes, strict=True))
    if not section.bars:
        return f"<tr>{cells}</tr>\n"
    drawn = _svg(section.bars[place]) if place < len(section.bars) else ""
    return f"<tr>{cells}<td>{drawn}</td></tr>\n"


def _svg(bar: Bar) -> str:
    begin = f' x="{bar.begin}"' if bar.begin else ""
    style = ' class="loss"' if bar.is_part else ""
    rect = f'<rect{begin} width="{max(bar.length, Decimal())}" height="8"{style}/>'
    return f'<svg viewBox="0 0 100 8" preserveAspectRatio="none">{rect}</svg>'


def _text(cell: object) -> str:
    """Escaped; line breaks are only spaces on a page."""
    return "" if cell is None else escape("\n".join(map(printable, str(cell).split("\n"))))


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


def _notes(texts: Iterable[str], cleaned: Callable[[str], str]) -> Iterator[_Block]:
    """A paragraph of each; one of several lines keeps them."""
    return (_Block(f"{cleaned(line)}\n" for line in text.split("\n")) for text in texts)


def _plain(answer: Answer) -> Iterator[_Block]:
    if answer.lines:
        yield _Block(f"{line}\n" for line in answer.lines)
        return
    yield from _paragraphs([printable(answer.heading)] if answer.heading else [])
    for section in answer.sections:
        yield from _plain_section(section)
    yield from _notes(answer.notes, printable)


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
    yield from _notes(section.notes, printable)


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
    yield from _notes(answer.notes, markdown)


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
    yield from _notes(section.notes, markdown)
