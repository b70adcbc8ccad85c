"""What an aggregator says of now, for all formats: texts with headings, and tables."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from gputally.formatting.times import instant
from gputally.formatting.wrapping import Fact, Grid, Paragraph, Part, text_lines, width
from gputally.output.answer import Answer, Row, Section


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
