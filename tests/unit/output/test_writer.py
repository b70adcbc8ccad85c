"""One writer makes all formats of what an answer states once."""

import io
import json
from decimal import Decimal

from gputally.formatting.csv_cells import Row
from gputally.output.answer import Answer, Bar, Entry, Section
from gputally.output.writer import write_answer

HEAD = ("team", "cost")
ROWS: list[Row] = [("a|b", Decimal("3.00")), ("<i>", Decimal("1.00")), ("total", Decimal("4.00"))]


def written(output: str, *sections: Section) -> str:
    file = io.StringIO()
    answer = Answer(
        title="Bill",
        about="Of October.",
        heading="Bill of October",
        sections=sections,
        notes=["A note."],
        columns=HEAD,
        records=ROWS[:2],
        document=lambda: {"rows": 2},
    )
    write_answer(file, answer, output=output)
    return file.getvalue()


def test_an_empty_line_separates_tables_and_notes() -> None:
    table = Section(head=HEAD, rows=ROWS, totals=1, notes=["Below."])

    parts = written("table", table, table).split("\n\n")

    assert [part.split("\n")[0] for part in parts] == [
        "Bill of October",
        *["team   cost", "Below."] * 2,
        "A note.",
    ]


def test_bars_are_drawn_for_rows_and_parts_but_not_for_totals() -> None:
    bars = [Bar(Decimal(100)), Bar(Decimal(50), Decimal(50), is_part=True)]
    table = Section(head=HEAD, rows=ROWS, totals=1, bars=bars, bar_width=4)

    lines = written("table", table).splitlines()[2:6]

    assert [line.partition(".00")[2].strip() for line in lines] == ["", "████", "░░", ""]
    assert lines[2].startswith("  <i>")
    html = written("html", table)
    assert html.count("<rect") == 2
    assert '<rect x="50" width="50" height="8" class="loss"/>' in html


def test_names_are_never_markup() -> None:
    table = Section(title="*all*", paragraph="a <b>", head=HEAD, rows=ROWS)

    assert "## \\*all\\*\n\na \\<b\\>\n\n| team | cost |" in written("markdown", table)
    assert "<td>&lt;i&gt;</td>" in written("html", table)
    assert "| a\\|b | 3.00 |" in written("markdown", table)


def test_a_table_without_rows_keeps_its_head() -> None:
    table = Section(head=HEAD)

    assert "| team | cost |\n| --- | --- |\n" in written("markdown", table)
    assert "team  cost\n" in written("table", table)
    assert "<tbody>\n</tbody>" in written("html", table)


def test_a_section_that_continues_follows_at_once() -> None:
    first, second = (
        Section(title="pod", lines=["one"], head=HEAD, rows=ROWS[:1]),
        Section(lines=["two"], continues=True),
    )

    assert "pod\n  one\nteam  cost\na|b   3.00\n  two\n" in written("table", first, second)


def test_what_was_found_has_its_facts_in_all_formats_for_people() -> None:
    found = Section(entries=[Entry(severity="error", rule="r-1", about="Pod a/b", facts=[("what", "it is wrong")])])

    assert "ERROR r-1: Pod a/b\n  what: it is wrong\n" in written("table", found)
    assert "### Error: Pod a/b\n\n`r-1`\n\n- what: it is wrong\n" in written("markdown", found)
    assert "<dt>what</dt><dd>it is wrong</dd>" in written("html", found)


def test_programs_get_records_and_the_document() -> None:
    assert written("csv", Section(notes=["for people"])) == "team,cost\na|b,3.00\n<i>,1.00\n"
    assert json.loads(written("json")) == {"rows": 2}
