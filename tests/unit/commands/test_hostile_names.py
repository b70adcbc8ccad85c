"""Names that tenants choose are text in every file and on every terminal: never formulas, markup or control codes."""

import argparse
import csv
import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import gputally
from gputally.formatting.csv_cells import csv_line
from gputally.formatting.formats import FORMATS
from gputally.formatting.tables import markdown_table
from gputally.output.answer import Answer, Entry, Section
from gputally.output.writer import write_answer
from gputally.web.openapi import openapi
from tests.fakes.named_ledger import named_ledger
from tests.fakes.whole_parser import whole_parser
from tests.unit.commands.sample import Runner
from tests.unit.web.test_report_route import served

FORMULA = "=1+cmd|'/c calc'!A0"
HOSTILE = (
    FORMULA,
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "\uff1d1",
    "'=1",
    'a"\n=1,',
    "\x1b[2J\x9b2J\x07",
    "|a\\|b",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:x)",
    "\u202egpj",
)
STARTS = re.compile(r"[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
NUMBER = re.compile(r"-?[0-9.]+")
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
BY = ("--window", "all", "--by", "tenant,tier,namespace,job,node,queue,gpu_model,pool")
PRICES = """
kind: PriceBook
currency: CHF
basis: gpu
rules: [{id: a, match: {default: true}, price: 1, effective_from: always}]
"""
COMMANDS: Mapping[str, Sequence[Sequence[str]]] = {
    "report": (
        BY,
        (*BY, "--compare", "1970-01-01"),
        ("--window", "all", "--waterfall", "--by", "tenant"),
        ("--window", "all", "--preset", "team"),
    ),
    "explain": (("--window", "all"),),
    "rerate": (("--prices", "{prices}", "--against", "{prices}", *BY),),
    "preemptions": (("--window", "all"), ("--window", "all", "--by", "job")),
    "waits": (("--window", "all", "--by", "tenant,tier,namespace,occupying_tier,occupying_tenant,pod"),),
    "periods": ((), ("1970-01-02", "--by", "tenant,tier")),
    "budgets": (("--config.file", "{config}", "--prices.file", "{prices}"),),
    "ledger query": (("SELECT * FROM allocations",), ("SELECT tenant AS '=1' FROM segments",)),
}
"""The arguments of every command that writes CSV of a ledger."""
WITHOUT_LEDGER = {"posture", "why", "fits", "what-if"}
"""Ask a cluster or an aggregator; what they answer goes through the same writer."""


def leaves(found: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """All commands with their parsers."""
    nested = [each for each in found._actions if isinstance(each, argparse._SubParsersAction)]
    if not nested:
        yield name, found
    for action in nested:
        for word, each in action.choices.items():
            yield from leaves(each, f"{name} {word}".strip())


def test_every_command_that_writes_csv_is_tested_here() -> None:
    """`import` writes rejected rows, `showback` what the report command writes; the rest is below."""
    writing = {
        name
        for name, each in leaves(whole_parser())
        for action in each._actions
        if {"csv", "focus"} & set(map(str, action.choices or ())) or "csv" in f"{action.help}{action.default}".split()
    }
    assert writing - {"import", "showback"} - WITHOUT_LEDGER == set(COMMANDS)
    assert "--rejected" in dict(leaves(whole_parser()))["import"].format_help()


def test_only_one_module_writes_csv() -> None:
    folder = Path(gputally.__file__).parent
    using = {
        str(each.relative_to(folder))
        for each in folder.rglob("*.py")
        if re.search(r"^import csv|csv\.(writer|DictWriter)|from csv import", each.read_text(), re.MULTILINE)
    }
    assert using == {"importing/job_file.py"}  # which reads
    text = (folder / "importing/job_file.py").read_text()
    assert "writer" not in text.lower()


def cells(text: str) -> list[str]:
    return [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]


def expect_text(text: str) -> None:
    found = cells(text)
    assert found
    assert [each for each in found if STARTS.match(each) and not NUMBER.fullmatch(each)] == []


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    prices, config = tmp_path / "prices.yaml", tmp_path / "config.yaml"
    prices.write_text(PRICES)
    config.write_text('kind: Configuration\nbudgets:\n  - {name: "b", tenant: "*", amount: 5, period: month}\n')
    return {"prices": prices, "config": config}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_command_writes_a_cell_that_a_spreadsheet_computes(
    run: Runner, tmp_path: Path, files: Mapping[str, Path], name: str
) -> None:
    ledger = named_ledger(tmp_path, name)
    for command, variants in COMMANDS.items():
        for arguments in variants:
            given = [each.format(**files) for each in arguments]
            result = run(*command.split(), *given, "--ledger", ledger, "--output", "csv")
            assert (result.status, command, given) == (0, command, given), result.err
            expect_text(result.out)
            assert not CONTROL.search(result.err)
    expect_text(run("report", "--window", "all", "--ledger", ledger, "--output", "focus").out)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_command_prints_a_control_code_or_markup(
    run: Runner, tmp_path: Path, files: Mapping[str, Path], name: str
) -> None:
    ledger = named_ledger(tmp_path, name)
    commands = dict(leaves(whole_parser()))
    for command, variants in COMMANDS.items():
        [outputs] = [each.choices for each in commands[command]._actions if "--output" in each.option_strings]
        for arguments in variants:
            given = [each.format(**files) for each in arguments]
            for output in {"table", "markdown", "html"} & set(outputs or ()):
                result = run(*command.split(), *given, "--ledger", ledger, "--output", output)
                assert result.status == 0, result.err
                assert not CONTROL.search(result.err)
                if output != "html":
                    assert not CONTROL.search(result.out), (command, given, output)
                if output != "table":
                    assert "<img" not in result.out.replace("\\<img", "")
                if output == "markdown":
                    expect_tables(result.out)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("output", FORMATS)
def test_a_name_is_text_wherever_an_answer_has_it(name: str, output: str) -> None:
    entry = Entry(severity="warning", rule="a-rule", about=name, facts=[("Because", name)])
    parts = Section(title=name, sentences=[name], head=["Pod", name], rows=[[name, 1]], entries=[entry], notes=[name])
    lines = Section(lines=[name], head=["Pod"], rows=[[name]])
    answer = Answer(
        title="Pods",
        about=name,
        heading=name,
        sections=[parts, lines],
        notes=[name],
        columns=["pod"],
        records=[[name]],
        document=lambda: {"pod": name},
    )
    file = io.StringIO()
    write_answer(file, answer, output=output)

    text = file.getvalue()
    if output == "json":
        assert json.loads(text) == {"pod": name}
    elif output == "csv":
        expect_text(text)
    else:
        assert not CONTROL.search(text)
    if output in ("html", "markdown"):
        assert "<img" not in text.replace("\\<img", "")


def expect_tables(text: str) -> None:
    """Each row of a table has as many cells as its head; no name is a link."""
    bars = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) if line.startswith("|") else 0 for line in text.splitlines()]
    assert all(a == b for a, b in pairwise(bars) if a and b), text
    assert "](" not in text.replace("\\](", "")


@given(st.text(st.sampled_from("=+-@'\t\r\n\uff1d\", ;1a")) | st.text())
@example("'")
@example("''")
@example("'=1")
def test_a_reader_restores_every_text_and_computes_none(name: str) -> None:
    line = csv_line((name, -1.5, "-7", 3, ""))

    expect_text(line)
    [row] = csv.reader(io.StringIO(line, newline=""))
    assert [each.removeprefix("'") for each in row] == [name, "-1.5", "-7", "3", ""]


@given(st.floats() | st.integers() | st.decimals(allow_nan=False))
@example(-1e-7)
@example(-math.inf)
@example(Decimal("-1.50"))
def test_no_number_is_changed(number: float | Decimal) -> None:
    text = f"{number:f}" if isinstance(number, Decimal) else f"{number}"

    assert csv_line((number, f"{-1.5:.2f}")) == f"{text},-1.50\n"


@given(st.text(st.sampled_from("\\|_*`[]<>&~#a1 \n\x1b")) | st.text())
def test_no_name_divides_a_row_of_markdown(name: str) -> None:
    lines = list(markdown_table(["tenant", "cost"], [[name, 1]]))

    assert len("".join(lines).splitlines()) == 3
    expect_tables("".join(lines))


def test_rejected_rows_are_text(run: Runner, tmp_path: Path) -> None:
    jobs, rejected = tmp_path / "jobs.csv", tmp_path / "rejected.csv"
    head = "id,submit,start,end,status,gpu_count"
    jobs.write_text(f"{head}\n=1+1,1,1,2,Failed,\x1b[2J\n@SUM(1),1,x,2,Failed,1\n-1,+1,1,2,=1,1\n")

    result = run("import", jobs, "--ledger", tmp_path / "l.db", "--zero", "2026-01-01", "--rejected", rejected)

    assert (result.status, len(rejected.read_text().splitlines())) == (9, 4)
    expect_text(rejected.read_bytes().decode())
    assert not CONTROL.search(result.err)


async def test_every_route_that_serves_csv_serves_text(tmp_path: Path) -> None:
    paths = openapi("1")["paths"]
    serving = {path for path, each in paths.items() if "text/csv" in each["get"]["responses"]["200"].get("content", {})}
    assert serving == {"/api/v1/report", "/api/v1/preemptions", "/api/v1/waits"}

    async with served(named_ledger(tmp_path, FORMULA)) as client:
        for path in serving:
            for by in ({}, {} if path.endswith("waits") else {"by": "job"}):
                async with client.get(path, params={"window": "all", "format": "csv", **by}) as answer:
                    assert answer.status == 200, await answer.text()
                    text = await answer.text()
                    expect_text(text)
        async with client.get("/api/v1/report", params={"window": "all", "format": "csv", "by": "job"}) as answer:
            assert f"'{FORMULA}" in cells(await answer.text())


def test_a_pipe_gets_what_a_terminal_gets(tmp_path: Path) -> None:
    ledger = named_ledger(tmp_path, "\x1b]0;title\x07")
    command = [sys.executable, "-m", "gputally", "report", "--window", "all", "--ledger", str(ledger)]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert not CONTROL.search(done.stdout + done.stderr)
    assert "\\x1b]0;title\\x07" in done.stdout
