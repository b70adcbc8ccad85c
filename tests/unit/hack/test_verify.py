import re
from pathlib import Path

import pytest

from hack import verify
from hack.verify import Gate, main

ROOT = Path(__file__).parents[3]


def test_every_gate_runs_before_one_fails_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fails = Gate("first", "python", ("-c", "print('what is wrong'); raise SystemExit(3)"))
    passes = Gate("second", "python", ("-c", "print('all good')"))
    monkeypatch.setattr(verify, "GATES", (fails, passes))

    assert main() == 1
    shown = capsys.readouterr().out
    assert re.search(r"^first +FAILED .*\nwhat is wrong\n", shown)
    assert re.search(r"^second +ok .* all good$", shown, re.MULTILINE)


def test_ci_runs_exactly_what_developers_run() -> None:
    script = (ROOT / ".ci" / "run").read_text()

    assert re.findall(r"^run (.+)$", script, re.MULTILINE) == ["make test", "make verify", "make e2e"]
