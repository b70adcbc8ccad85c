"""Writes answers as HTML: one file with its style, which needs nothing else."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from html import escape
from itertools import islice

from gputally.formatting.html_pages import PAGE_END, page_start
from gputally.output.answer import Answer, Bar, Section


def html_lines(answer: Answer) -> Iterator[str]:
    """The page of an answer; all its texts are escaped."""
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
    return "" if cell is None else escape(str(cell))
