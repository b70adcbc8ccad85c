"""One event, one line."""

import json
import logging

import pytest

from gputally.process.log import JsonFormatter, TextFormatter, configure


def record(message: str, *, bug: bool = False) -> logging.LogRecord:
    trouble = None
    if bug:
        error = ZeroDivisionError("by nothing")
        trouble = (type(error), error, None)
    made = logging.LogRecord("gputally.x", logging.WARNING, "x.py", 1, message, None, trouble)
    made.created = 1_780_898_400.1239
    return made


def test_a_line_of_text_has_time_level_and_message() -> None:
    assert TextFormatter().format(record("pods: gone")) == "2026-06-08T06:00:00.123Z WARNING pods: gone"


def test_a_message_of_several_lines_stays_one_line() -> None:
    assert TextFormatter().format(record("one\ntwo\n")).endswith(" one | two")
    assert "\n" not in JsonFormatter().format(record("one\ntwo\n"))


def test_a_bug_shows_its_traceback() -> None:
    assert TextFormatter().format(record("scrape failed", bug=True)).endswith("ZeroDivisionError: by nothing")


def test_a_line_of_json_has_all_that_is_known() -> None:
    made = record("gone", bug=True)
    made.kind = "pods"

    line = json.loads(JsonFormatter().format(made))

    assert line.pop("exception").endswith("ZeroDivisionError: by nothing")
    assert line == {
        "time": "2026-06-08T06:00:00.123Z",
        "level": "warning",
        "logger": "gputally.x",
        "message": "gone",
        "kind": "pods",
    }


@pytest.mark.parametrize(("level", "said"), [("debug", 2), ("info", 2), ("warning", 1), ("error", 0)])
def test_what_is_below_the_level_is_not_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, level: str, said: int
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    before = root.level
    configure(level=level, form="text")
    try:
        logging.getLogger("gputally").info("%d", 1)
        logging.getLogger("gputally").warning("%d", 2)
    finally:
        root.setLevel(before)

    assert len(capsys.readouterr().err.splitlines()) == said


def test_control_characters_of_a_message_are_shown_and_not_obeyed() -> None:
    line = TextFormatter().format(record("pod \x1b[2J\x07\u202ename\x00 é"))

    assert line.endswith(" pod \\x1b[2J\\x07\\u202ename\\x00 é")
