"""The process that answers questions to a ledger: the first one starts it, and it stays warm while it is asked."""

import asyncio
import contextlib
import os
import resource
import sys
from asyncio.subprocess import PIPE, Process
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from gputally.answers.parameters import InvalidRequest
from gputally.model.printable import printable
from gputally.questions.answer import LENGTH_BYTES, Ended, Outcome
from gputally.questions.parameter import InvalidQuestion
from gputally.web.report_requests import rejected

MEMORY_BYTES: Final = 256 * 2**20
"""Limit of a report's memory, so that the container's limit is never reached."""
OUTPUT_BYTES: Final = 8 * 2**20
TIMEOUT_SECONDS: Final = 120.0
IDLE_SECONDS: Final = 120.0
"""How long the process waits for the next question: most clicks of somebody who reads a page follow within that time,
and it holds its memory no longer than a kept answer is of use."""
_NICENESS: Final = 10
_PROGRAM: Final = (sys.executable, "-P", "-m", "gputally.commands.from_ledger.question_loop")
_SMALLER: Final = "choose a shorter period, fewer dimensions or top, or run gputally report on a copy of the ledger"
_OUTCOME: Final = msgspec.json.Decoder(Outcome)


class ReportUnavailable(Exception):
    """The report cannot be made now, or not here; the text says why."""


class ReportFailed(ReportUnavailable):
    """The command failed. Its errors are for operators, not for those who asked."""

    def __init__(self, status: int, errors: str) -> None:
        super().__init__("the report failed; see the log")
        self.status = status
        self.errors = errors.strip()[-2000:]


class _Died(Exception):
    """The process ended instead of answering; whether the answer `has_begun`."""

    def __init__(self, *, has_begun: bool) -> None:
        super().__init__(has_begun)
        self.has_begun = has_begun


class Limits(NamedTuple):
    """What a process may use, and what the user can do if it is not enough."""

    memory_bytes: int
    output_bytes: int
    seconds: float
    remedy: str

    def too_slow(self) -> ReportUnavailable:
        """For what takes too long."""
        return ReportUnavailable(f"the report took more than {self.seconds:.0f} s; {self.remedy}")

    def too_long(self) -> ReportUnavailable:
        """For an output that is too long."""
        return ReportUnavailable(f"the report is longer than {self.output_bytes >> 20} MiB; {self.remedy}")

    def too_large(self) -> ReportUnavailable:
        """For what needs too much memory."""
        return ReportUnavailable(f"the report needs more than {self.memory_bytes >> 20} MiB; {self.remedy}")

    def failure(self, status: int, errors: str) -> ReportUnavailable:
        """For a process that ended with this status and wrote these errors."""
        return self.too_large() if _is_of_memory(errors) else ReportFailed(status, errors)


def _is_of_memory(errors: str) -> bool:
    """Whether a process failed because it may use no more memory."""
    return "MemoryError" in errors or "out of memory" in errors


class LedgerProcess:
    """Answers questions to the ledger at this URL, one at a time.

    After an answer the process waits `IDLE_SECONDS` for the next question, then it ends. It remembers nothing of a
    question. One that is too large, too slow or cancelled ends it, and so does an answer that left much memory in use;
    the next question starts another.
    """

    def __init__(self, ledger: str) -> None:
        self._ledger = ledger
        self._process: Process | None = None
        self._idle: asyncio.TimerHandle | None = None

    async def answer(self, question: Struct, limits: Limits | None = None) -> bytes:
        """What the command of the question prints. Raises: InvalidRequest, ReportUnavailable."""
        limits, is_usable = limits or Limits(MEMORY_BYTES, OUTPUT_BYTES, TIMEOUT_SECONDS, _SMALLER), False
        try:
            async with asyncio.timeout(limits.seconds):
                body, outcome = await self._asked(question, limits)
            is_usable = not outcome.is_last
        except TimeoutError:
            raise limits.too_slow() from None
        finally:
            if not is_usable:
                await self.end()
        if is_usable:
            self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._expire)
        return _result(body, outcome, limits)

    async def _asked(self, question: Struct, limits: Limits) -> tuple[bytes, Outcome]:
        """What the process prints for the question, and how it ended. Raises: ReportUnavailable.

        A process that waited and dies before its answer begins is replaced once. A new one is not: the question may be
        what killed it.
        """
        waiting = self._process
        process = await self._started(limits)
        try:
            return await _exchanged(process, question, limits)
        except _Died as died:
            error = await _death(process, limits)
            if process is not waiting or died.has_begun:
                raise error from None
        await self.end()
        return await self._asked(question, limits)

    async def end(self) -> None:
        """End the process, if there is one, and wait until its memory is free."""
        process = self._released()
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()

    def _expire(self) -> None:
        process = self._released()
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    def _released(self) -> Process | None:
        if self._idle is not None:
            self._idle.cancel()
        process, self._process, self._idle = self._process, None, None
        return process

    async def _started(self, limits: Limits) -> Process:
        """The process that waits for a question, or a new one."""
        if self._idle is not None:
            self._idle.cancel()
        process = self._process
        if process is not None and (process.returncode is not None or _has_ended(process)):
            await self.end()
        if self._process is None:
            command = (*_PROGRAM, self._ledger)
            self._process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
            _restrain(self._process.pid, limits.memory_bytes)
        return self._process


def _has_ended(process: Process) -> bool:
    """Whether the process has closed its output, before its end is noticed."""
    return process.stdout is None or process.stdout.at_eof()


async def _exchanged(process: Process, question: Struct, limits: Limits) -> tuple[bytes, Outcome]:
    """What the process prints for the question, and how it ended. Raises: ReportUnavailable, _Died."""
    assert process.stdin
    body = bytearray()
    try:
        process.stdin.write(msgspec.json.encode(question) + b"\n")
        await process.stdin.drain()
        while part := await _frame(process, limits, after=len(body)):
            body += part
        return bytes(body), _OUTCOME.decode(await _frame(process, limits))
    except (ConnectionError, asyncio.IncompleteReadError):
        raise _Died(has_begun=bool(body)) from None


async def _frame(process: Process, limits: Limits, *, after: int = 0) -> bytes:
    """The next part of an answer, `after` so many bytes. Raises: ReportUnavailable before it reads too long a part."""
    assert process.stdout
    length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
    if after + length > limits.output_bytes:
        raise limits.too_long()
    return await process.stdout.readexactly(length)


async def _death(process: Process, limits: Limits) -> ReportUnavailable:
    """Why the process ended instead of answering."""
    assert process.stderr
    errors = await process.stderr.read()
    return limits.failure(await process.wait(), errors.decode(errors="replace"))


def _result(body: bytes, outcome: Outcome, limits: Limits) -> bytes:
    """The body. Raises: InvalidRequest or ReportUnavailable without an answer."""
    match outcome.ended:
        case Ended.ANSWERED:
            return body
        case Ended.REJECTED:
            if outcome.parameter:
                raise rejected(InvalidQuestion(outcome.parameter, outcome.text, *outcome.names))
            raise InvalidRequest(printable(outcome.text))
        case Ended.TOO_LARGE:
            raise limits.too_large()
        case Ended.FAILED:
            raise ReportFailed(outcome.exit_status, outcome.text)


def _restrain(pid: int, memory_bytes: int) -> None:
    """Limit the memory of the process, and prefer others for the CPU."""
    with contextlib.suppress(ProcessLookupError):  # it has ended already
        resource.prlimit(pid, resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
        os.setpriority(os.PRIO_PROCESS, pid, _NICENESS)
