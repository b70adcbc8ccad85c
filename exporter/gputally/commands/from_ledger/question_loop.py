"""Answers questions to a ledger one after the other: each is a line of JSON on standard input, until that ends.

The aggregator starts `python -m gputally.commands.from_ledger.question_loop LEDGER` (`web/ledger_process.py`). An
answer consists of frames, each after its length: what the command prints, an empty frame, and an `Outcome` as JSON.
Each question opens the ledger itself, and nothing of it is left when the next one comes.
"""

import gc
import io
import os
import resource
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import structs

from gputally.commands.from_ledger.reading import LedgerFiles
from gputally.errors import ConfigError, GputallyError
from gputally.questions.answer import LENGTH_BYTES, Ended, Outcome
from gputally.questions.own import BudgetsNow, PeriodNow
from gputally.questions.parameter import InvalidQuestion
from gputally.questions.preemptions import Preemptions
from gputally.questions.report import Report
from gputally.questions.waits import Waits

_ANSWERS: Final[Mapping[type, str]] = {
    Report: "report:report",
    Waits: "waits:report_waits",
    Preemptions: "preemptions:list_preemptions",
    BudgetsNow: "budgets:show_budgets_now",
    PeriodNow: "periods:show_period_now",
}
"""The functions that answer, by question; a module is imported when it is asked for the first time."""
_QUESTION: Final = msgspec.json.Decoder(Report | Waits | Preemptions | BudgetsNow | PeriodNow)
WARM_BYTES: Final = 80 * 2**20
"""Largest resident size at which the process waits for another question: a large report leaves memory that Python does
not return, so after one the process ends."""
_FRAME_BYTES: Final = 2**16
"""Largest part of what a command prints: the aggregator stops at its limit, before it reads what is beyond."""


class Frames(io.RawIOBase):
    """Writes to a file in frames, while it is open."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.is_open = True

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any) -> int:  # noqa: ANN401 - any buffer, as of RawIOBase
        """Write a frame of the data's first bytes, and return how many these are."""
        part = data[:_FRAME_BYTES]
        if self.is_open:
            _write_frame(self._file, part)
        return len(part)


def _write_frame(file: BinaryIO, data: Any) -> None:  # noqa: ANN401 - any buffer
    file.write(len(data).to_bytes(LENGTH_BYTES, "big"))
    file.write(data)


def answer_all(ledger: str, questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer each question, until there is no more, or one has left much memory in use."""
    files = LedgerFiles(ledger)
    for line in questions:
        outcome = _answered(line, files, Frames(answers))
        gc.collect()
        gc.freeze()  # modules stay; a later collection looks only at what is new, in less than a millisecond
        is_last = outcome.ended is Ended.TOO_LARGE or _resident_bytes() > WARM_BYTES
        _write_frame(answers, b"")
        _write_frame(answers, msgspec.json.encode(structs.replace(outcome, is_last=is_last)))
        answers.flush()
        if is_last:
            return


def _answered(line: bytes, files: LedgerFiles, frames: Frames) -> Outcome:
    printed = io.TextIOWrapper(io.BufferedWriter(frames, _FRAME_BYTES), "utf-8", newline="\n")
    try:
        question = _QUESTION.decode(line)
        with redirect_stdout(printed), redirect_stderr(io.StringIO()):
            _answering(type(question))(question, files)
            printed.flush()
    except Exception as error:  # noqa: BLE001 - the aggregator logs what is a bug
        frames.is_open = False  # what was printed, but not written, is no answer
        return _failed(error)
    return Outcome(ended=Ended.ANSWERED)


def _answering(question: type) -> Callable[[Any, LedgerFiles], int]:
    module, _, name = _ANSWERS[question].partition(":")
    found: Callable[[Any, LedgerFiles], int] = getattr(import_module(f"gputally.commands.from_ledger.{module}"), name)
    return found


def _failed(error: Exception) -> Outcome:
    if isinstance(error, InvalidQuestion):
        return Outcome(ended=Ended.REJECTED, parameter=error.parameter, text=error.text, names=error.names)
    if isinstance(error, MemoryError) or "out of memory" in str(error):
        return Outcome(ended=Ended.TOO_LARGE)
    if isinstance(error, GputallyError):
        ended = Ended.REJECTED if error.exit_status == ConfigError.exit_status else Ended.FAILED
        return Outcome(ended=ended, text=str(error), exit_status=error.exit_status)
    return Outcome(ended=Ended.FAILED, text="".join(traceback.format_exception(error)), exit_status=1)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main() -> None:
    """Answer on the standard output of the process, to which nothing else is written."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        answer_all(sys.argv[1], sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
