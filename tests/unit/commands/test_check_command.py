"""The command `gputally check`."""

import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from gputally.cli import main


def test_check_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"kind: Configuration\n")))

    assert main(["check", "-"]) == 0
    assert capsys.readouterr().out == "1 file checked, no problems\n"


def test_check_prints_problems_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("kind: Configuration\nnope: 1\n")

    assert main(["check", "--output", "json", str(file)]) == 2

    document = json.loads(capsys.readouterr().out)
    [problem] = document.pop("problems")
    assert document == {"version": 1, "files": 1}
    assert (problem["file"], problem["field"]) == (str(file), "nope")
    assert problem["text"].startswith("unknown field")


def test_check_prints_an_empty_list_without_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("kind: Configuration\n")

    assert main(["check", "--output", "json", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []
