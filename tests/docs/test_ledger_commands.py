"""Every documented command on a ledger, run on a ledger."""

import io
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gputally.cli import main
from tests.docs.pages import TEXTS, blocks
from tests.unit.maintenance.conftest import written

IN_POD = re.compile(r"kubectl exec (?:-i )?-n gputally deploy/gputally-aggregator -- (?=gputally )")
IN_NEW_POD = re.compile(r"kubectl run .* -- (?=restore )", re.DOTALL)
BACKUP = "gputally-2026-10-31.db"


def shown(text: str) -> list[str]:
    """The commands of a page's console blocks that work on a ledger, as they are inside a pod."""
    lines = "\n".join(blocks(re.sub(r"^ {3}", "", text, flags=re.MULTILINE), "console")).replace("\\\n", " ")
    found = re.findall(r"^\$ (.*(?:\n[ ].*)*)", lines, re.MULTILINE)
    inside = [IN_NEW_POD.sub("gputally ", IN_POD.sub("", each)) for each in found]
    return [each for each in inside if re.match(r"gputally (ledger|backup|restore) ", each)]


COMMANDS = [(page, command) for page, text in sorted(TEXTS.items()) for command in shown(text)]


def test_runbooks_and_backup_page_have_such_commands() -> None:
    assert {page for page, _ in COMMANDS} >= {
        "docs/backup.md",
        "docs/runbooks/README.md",
        "docs/runbooks/GputallyLedgerBehind.md",
        "docs/runbooks/GputallyLedgerDamaged.md",
        "docs/runbooks/GputallyReconciliationDifference.md",
    }
    assert {command.split()[1] for _, command in COMMANDS} == {"ledger", "backup", "restore"}


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_a_documented_command_succeeds(
    page: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("gputally.db", BACKUP):
        written(tmp_path / name)
    words, _, target = command.partition(" > ")
    words, _, source = words.partition(" < ")
    given = {"query.sql": b"SELECT 1", BACKUP: (tmp_path / BACKUP).read_bytes(), "": b""}[source]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    stream = io.BytesIO()
    if target:
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=stream, isatty=lambda: False, flush=lambda: None))

    assert main(shlex.split(words)[1:]) == 0, page
    assert not target or stream.getvalue().startswith(b"SQLite format 3\0")


@pytest.mark.parametrize("page", [page for page in TEXTS if page.startswith("docs/runbooks/")])
def test_runbooks_need_no_tool_that_the_image_lacks(page: str) -> None:
    inside = [line for block in blocks(TEXTS[page], "console") for line in block.splitlines() if "kubectl exec" in line]

    assert [line for line in inside if not re.search(r"-- (gputally|nvidia-smi) ?", line)] == []
    assert "sqlite3" not in TEXTS[page]
