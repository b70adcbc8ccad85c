"""Every command and query that runbooks and the pages on the ledger show works on a real ledger."""

import io
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from gputally import cli
from tests.docs.pages import ROOT, TEXTS, blocks
from tests.unit.commands.sample import closed, in_use

RUNBOOKS = [page for page in TEXTS if page.startswith("docs/runbooks/")]
PAGES = [*RUNBOOKS, "docs/backup.md", "docs/ledger.md", "docs/install.md"]
QUERIES = [(page, query) for page in TEXTS for query in blocks(TEXTS[page], "sql")]
INLINE = re.compile(r"`(gputally (?:ledger info|(?:ledger \w+|backup|restore) [^`]+))`")
QUERY = "SELECT count(*) FROM pods"


class Shown(NamedTuple):
    """A command as a page shows it: its arguments, and what a shell redirects."""

    page: str
    arguments: tuple[str, ...]
    source: str | None
    target: str | None


def shown() -> Iterator[Shown]:
    for page in PAGES:
        lines = [line for block in blocks(TEXTS[page], "console") for line in block.replace("\\\n", "").splitlines()]
        commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        for command in (*commands, *INLINE.findall(TEXTS[page].replace("\n", " "))):
            if (parsed := parse(page, command)).arguments[:1] in {("ledger",), ("backup",), ("restore",), ("check",)}:
                yield parsed


def parse(page: str, command: str) -> Shown:
    """What `gputally` gets of the command; nothing if it is another program's."""
    words = shlex.split(command, comments=True)
    if words[:2] == ["kubectl", "exec"]:
        words = words[words.index("--") + 1 :]
    redirected = {sign: words[words.index(sign) + 1] for sign in ("<", ">") if sign in words}
    ends = [words.index(sign) for sign in redirected]
    arguments = tuple(words[1 : min(ends, default=len(words))]) if words[:1] == ["gputally"] else ()
    return Shown(page, arguments, redirected.get("<"), redirected.get(">"))


COMMANDS = sorted(set(shown()), key=repr)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory and the variable as in the aggregator's container; with the examples."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPUTALLY_LEDGER", str(tmp_path / "gputally.db"))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.arguments))
def test_a_command_works(
    command: Shown, home: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    is_restore = command.arguments[0] == "restore"
    if command.arguments[0] != "backup":
        closed(home / "backup.db")
    for name in command.arguments[1:]:
        if ".before-" in name:
            closed(home / name)
    if command.source:
        given = (home / "backup.db").read_bytes() if is_restore else QUERY.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))

    with nullcontext(closed(home / "gputally.db")) if is_restore else in_use(home / "gputally.db"):
        assert cli.main(command.arguments) == 0

    captured = capfdbinary.readouterr()
    assert (captured.err if is_restore or command.arguments[0] == "backup" else captured.out) != b""
    assert bool(command.target) <= bool(captured.out)
    assert ("-" in command.arguments) == bool(command.source or (command.target and "backup" in command.arguments))


def test_there_are_commands_of_every_kind() -> None:
    kinds = {command.arguments[: 2 if command.arguments[0] == "ledger" else 1] for command in COMMANDS}

    assert kinds == {
        ("ledger", "info"),
        ("ledger", "check"),
        ("ledger", "query"),
        ("backup",),
        ("restore",),
        ("check",),
    }
    assert len(COMMANDS) > 12


@pytest.mark.parametrize(("page", "sql"), QUERIES)
def test_a_query_works(
    page: str, sql: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(sql))
    with in_use(home / "gputally.db"):
        assert cli.main(["ledger", "query", "-"]) == 0, page

    assert capsys.readouterr().out


def test_there_are_queries() -> None:
    assert {page for page, _ in QUERIES} >= {"docs/accounting.md", "docs/runbooks/HighPreemptionRate.md"}


@pytest.mark.parametrize("page", RUNBOOKS)
def test_no_runbook_needs_programs_that_the_image_lacks(page: str) -> None:
    inside = re.findall(r"kubectl exec .*?-- (\S+)", TEXTS[page])

    assert set(inside) <= {"gputally", "nvidia-smi"}
    assert not re.search(r"(?:^\$ |\| )sqlite3 ", TEXTS[page], re.MULTILINE)
