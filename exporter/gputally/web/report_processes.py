"""Runs what reads the ledger in processes of their own, so that it never delays a scrape or an event."""

import asyncio
import contextlib
import logging
import re
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from gputally.answers.parameters import InvalidRequest
from gputally.questions.ledger_question import LedgerQuestion
from gputally.web.ledger_process import (
    MEMORY_BYTES,
    OUTPUT_BYTES,
    TIMEOUT_SECONDS,
    LedgerProcess,
    Limits,
    ReportFailed,
    ReportUnavailable,
    restrain,
)
from gputally.web.turns import Turns, in_thread

PREVIEW_MEMORY_BYTES: Final = 128 * 2**20
"""Limit for a period to close, which may run beside a report."""
PREVIEW_BYTES: Final = 32 * 2**20
PREVIEW_SECONDS: Final = 1800.0
PLACES: Final = 8
"""Requests of one client that may wait or be in progress: one report is made at a time."""
KEPT_SECONDS: Final = 60.0
"""How long a result is kept for the same request, so that its pages fit together."""
_MAX_KEPT: Final = 4
_REJECTED: Final = 2
"""Exit status of a command with invalid flags."""
_PROGRAM: Final = (sys.executable, "-P", "-m", "gputally")
_REJECTION: Final = re.compile(r".*: error: (argument )?(--)?|^gputally: (--)?", re.DOTALL)
"""What precedes the name of a parameter in the message of a command."""
_SHORTER: Final = "choose a shorter `period` in the section `closing`"

logger = logging.getLogger(__name__)


class ReportRunner:
    """Answers one question to the ledger at this URL at a time; a context, at whose end its process ends."""

    def __init__(self, ledger: str) -> None:
        self._ledger = ledger
        self._turns = Turns(1, places=PLACES)
        self._process = LedgerProcess(ledger)
        self._kept: dict[LedgerQuestion, tuple[float, bytes]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        await self._process.end()

    async def run(self, question: LedgerQuestion, *, finish: Callable[[bytes], bytes] = bytes) -> bytes:
        """What the command of the question prints; up to `KEPT_SECONDS` old.

        `finish` converts it in a thread, within the same turn.

        Raises: InvalidRequest, ReportUnavailable, TooBusy.
        """
        async with self._turns.turn():
            body = self._recent(question) or await self._fresh(question)
            return await in_thread(finish, body)

    def _recent(self, question: LedgerQuestion) -> bytes | None:
        since = time.monotonic() - KEPT_SECONDS
        self._kept = {each: kept for each, kept in self._kept.items() if kept[0] > since}
        return self._kept[question][1] if question in self._kept else None

    def keep(self, body: bytes, question: LedgerQuestion) -> None:
        """Answer this question from a body that was just made: that of the same question, with its cut-off."""
        self._kept[question] = time.monotonic(), body

    async def run_command(self, name: str, arguments: tuple[str, ...]) -> bytes:
        """What another command prints that reads the ledger; it takes turns with the questions of clients.

        Only for the process itself, which always gets its turn. The process that is warm ends before, so that both
        never need memory at the same time. Raises: InvalidRequest, ReportUnavailable.
        """
        limits = Limits(MEMORY_BYTES, OUTPUT_BYTES, TIMEOUT_SECONDS, f"run gputally {name} on a copy of the ledger")
        async with self._turns.turn():
            await self._process.end()
            return await _own_output((*_PROGRAM, name, f"--ledger={self._ledger}", *arguments), limits)

    async def _fresh(self, question: LedgerQuestion) -> bytes:
        try:
            body = await self._process.answer(question)
        except ReportFailed as error:
            logger.error("a report failed with exit status %d: %s", error.status, error.errors)  # noqa: TRY400 - its own
            raise
        while len(self._kept) >= _MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        self.keep(body, question)
        return body


async def preview_period(ledger: str, *, name: str, zone: str) -> bytes:
    """What `gputally periods --preview` prints as JSON: the period as it would be closed now.

    Raises: InvalidRequest, ReportUnavailable.
    """
    command = (*_PROGRAM, "periods", f"--ledger={ledger}", f"--time-zone={zone}", "--preview", "--output=json", name)
    return await _own_output(command, Limits(PREVIEW_MEMORY_BYTES, PREVIEW_BYTES, PREVIEW_SECONDS, _SHORTER))


async def _own_output(command: tuple[str, ...], limits: Limits) -> bytes:
    """What a command of the aggregator itself prints, whose errors are for its log."""
    try:
        return await _output(command, limits)
    except ReportFailed as error:
        raise ReportUnavailable(error.errors.removeprefix("gputally: ")) from None


async def _output(command: tuple[str, ...], limits: Limits) -> bytes:
    """What the command prints. Raises: InvalidRequest, ReportUnavailable."""
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=PIPE)
    try:
        restrain(process.pid, limits.memory_bytes)
        async with asyncio.timeout(limits.seconds):
            body, errors = await _read(process, limits)
            status = await process.wait()
    except TimeoutError:
        raise limits.too_slow() from None
    finally:
        await _ended(process)
    if status:
        raise _failure(status, errors.decode(errors="replace"), limits)
    return body


async def _read(process: Process, limits: Limits) -> tuple[bytes, bytes]:
    """The output and the errors of the process. Raises: ReportUnavailable if they are too long."""
    assert process.stdout
    assert process.stderr
    errors = asyncio.create_task(process.stderr.read(), name="errors of a report")
    body = bytearray()
    try:
        while part := await process.stdout.read(2**16):
            body += part
            if len(body) > limits.output_bytes:
                raise limits.too_long()
        return bytes(body), await errors
    finally:
        errors.cancel()


async def _ended(process: Process) -> None:
    """End the process if it still runs."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _failure(status: int, errors: str, limits: Limits) -> Exception:
    if status == _REJECTED:
        return InvalidRequest(_REJECTION.sub("", errors).strip())
    return limits.failure(status, errors)
