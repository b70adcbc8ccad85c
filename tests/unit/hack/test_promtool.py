from pathlib import Path

import pytest

from hack import promtool
from hack.promtool import REMEDY, main


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a file of rules, one of tests, and a promtool that refuses what its arguments call `bad`."""
    for name in ("alerts/generated/rules/pending.yaml", "tests/promtool/PodsWait.yaml"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    tool = tmp_path / "promtool"
    tool.write_text('#!/bin/sh\necho "$@"\ncase "$*" in *bad*) exit 1;; esac\n')
    tool.chmod(0o755)
    return tmp_path


def test_rules_and_tests_are_given_to_promtool(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(promtool, "program", lambda: str(root / "promtool"))

    assert main(root) == 0
    assert capsys.readouterr().out == "1 test files pass, for 1 rule files\n"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("alerts/generated/rules/bad.yaml", "check rules --lint=all --lint-fatal"),
        ("tests/promtool/bad.yaml", "test rules"),
    ],
)
def test_what_promtool_refuses_is_shown(
    root: Path, bad: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(promtool, "program", lambda: str(root / "promtool"))
    (root / bad).touch()

    assert main(root) == 1
    shown = capsys.readouterr().out
    assert shown.startswith(said)
    assert str(root / bad) in shown


def test_without_promtool_the_remedy_is_said(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(promtool, "program", lambda: None)

    assert main(root) == 1
    assert capsys.readouterr().out == f"{REMEDY}\n"
