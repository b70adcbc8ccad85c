"""Runs commands that read the ledger in processes of their own, so that they never delay a scrape or an event."""

import asyncio
import contextlib
import logging
import os
import re
import resource
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import Final, NamedTuple

from gputally.answers.parameters import InvalidRequest
from gputally.web.turns import Turns, in_thread

MEMORY_BYTES: Final = 256 * 2**20
"""Limit of a report's memory, so that the container's limit is never reached."""
OUTPUT_BYTES: Final = 8 * 2**20
TIMEOUT_SECONDS: Final = 120.0
PREVIEW_MEMORY_BYTES: Final = 128 * 2**20
"""Limit for a period to close, which may run beside a report."""
PREVIEW_BYTES: Final = 32 * 2**20
PREVIEW_SECONDS: Final = 1800.0
PLACES: Final = 8
"""Requests of one client that may wait or be in progress: one report is made at a time."""
KEPT_SECONDS: Final = 60.0
"""How long a result is kept for the same request, so that its pages fit together."""
_MAX_KEPT: Final = 4
_NICENESS: Final = 10
_REJECTED: Final = 2
"""Exit status of a command with invalid flags."""
_PROGRAM: Final = (sys.executable, "-P", "-m", "gputally")
_REJECTION: Final = re.compile(r".*: error: (argument )?(--)?|^gputally: (--)?", re.DOTALL)
"""What precedes the name of a parameter in the message of a command."""
_SHORTER: Final = "choose a shorter `period` in the section `closing`"
_SMALLER: Final = "choose a shorter period, fewer dimensions or top, or run gputally report on a copy of the ledger"

logger = logging.getLogger(__name__)


class ReportUnavailable(Exception):
    """The report cannot be made now, or not here; the text says why."""


class ReportFailed(ReportUnavailable):
    """The command failed. Its errors are for operators, not for those who asked."""

    def __init__(self, status: int, errors: str) -> None:
        super().__init__("the report failed; see the log")
        self.status = status
        self.errors = errors.strip()[-2000:]


class ReportRunner:
    """Runs one report at a time on the ledger at this URL."""

    def __init__(self, ledger: str) -> None:
        self._ledger = ledger
        self._turns = Turns(1, places=PLACES)
        self._kept: dict[tuple[str, ...], tuple[float, bytes]] = {}

    async def run(
        self,
        arguments: tuple[str, ...],
        *,
        command: str = "report",
        finish: Callable[[bytes], bytes] = bytes,
    ) -> bytes:
        """What `gputally report`, or another command, prints with these arguments; up to `KEPT_SECONDS` old.

        `finish` converts it in a thread, within the same turn.

        Raises: InvalidRequest, ReportUnavailable, TooBusy.
        """
        async with self._turns.turn():
            body = self._recent((command, *arguments)) or await self._fresh(command, arguments)
            return await in_thread(finish, body)

    def _recent(self, key: tuple[str, ...]) -> bytes | None:
        since = time.monotonic() - KEPT_SECONDS
        self._kept = {each: kept for each, kept in self._kept.items() if kept[0] > since}
        return self._kept[key][1] if key in self._kept else None

    def keep(self, body: bytes, arguments: tuple[str, ...], *, command: str = "report") -> None:
        """Answer these arguments from a body that was just made: those of the same question, with its cut-off."""
        self._kept[command, *arguments] = time.monotonic(), body

    async def run_command(self, name: str, arguments: tuple[str, ...]) -> bytes:
        """What another command prints that reads the ledger; it takes turns with the reports of clients.

        Only for the process itself, which always gets its turn. Raises: InvalidRequest, ReportUnavailable.
        """
        limits = _Limits(MEMORY_BYTES, OUTPUT_BYTES, TIMEOUT_SECONDS, f"run gputally {name} on a copy of the ledger")
        async with self._turns.turn():
            return await _own_output((*_PROGRAM, name, f"--ledger={self._ledger}", *arguments), limits)

    async def _fresh(self, command: str, arguments: tuple[str, ...]) -> bytes:
        try:
            limits = _Limits(MEMORY_BYTES, OUTPUT_BYTES, TIMEOUT_SECONDS, _SMALLER)
            body = await _output((*_PROGRAM, command, f"--ledger={self._ledger}", *arguments), limits)
        except ReportFailed as error:
            logger.error("a report failed with exit status %d: %s", error.status, error.errors)  # noqa: TRY400 - its own
            raise
        while len(self._kept) >= _MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[command, *arguments] = time.monotonic(), body
        return body


async def preview_period(ledger: str, *, name: str, zone: str) -> bytes:
    """What `gputally periods --preview` prints as JSON: the period as it would be closed now.

    Raises: InvalidRequest, ReportUnavailable.
    """
    command = (*_PROGRAM, "periods", f"--ledger={ledger}", f"--time-zone={zone}", "--preview", "--output=json", name)
    return await _own_output(command, _Limits(PREVIEW_MEMORY_BYTES, PREVIEW_BYTES, PREVIEW_SECONDS, _SHORTER))


async def _own_output(command: tuple[str, ...], limits: "_Limits") -> bytes:
    """What a command of the aggregator itself prints, whose errors are for its log."""
    try:
        return await _output(command, limits)
    except ReportFailed as error:
        raise ReportUnavailable(error.errors.removeprefix("gputally: ")) from None


class _Limits(NamedTuple):
    memory_bytes: int
    output_bytes: int
    seconds: float
    remedy: str


async def _output(command: tuple[str, ...], limits: _Limits) -> bytes:
    """What the command prints. Raises: InvalidRequest, ReportUnavailable."""
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=PIPE)
    try:
        _restrain(process.pid, limits.memory_bytes)
        async with asyncio.timeout(limits.seconds):
            body, errors = await _read(process, limits)
            status = await process.wait()
    except TimeoutError:
        raise ReportUnavailable(f"the report took more than {limits.seconds:.0f} s; {limits.remedy}") from None
    finally:
        await _ended(process)
    if status:
        raise _failure(status, errors.decode(errors="replace"), limits)
    return body


def _restrain(pid: int, memory_bytes: int) -> None:
    """Limit the memory of the process, and prefer others for the CPU."""
    with contextlib.suppress(ProcessLookupError):  # it has ended already
        resource.prlimit(pid, resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
        os.setpriority(os.PRIO_PROCESS, pid, _NICENESS)


async def _read(process: Process, limits: _Limits) -> tuple[bytes, bytes]:
    """The output and the errors of the process. Raises: ReportUnavailable if they are too long."""
    assert process.stdout
    assert process.stderr
    errors = asyncio.create_task(process.stderr.read(), name="errors of a report")
    body = bytearray()
    try:
        while part := await process.stdout.read(2**16):
            body += part
            if len(body) > limits.output_bytes:
                raise ReportUnavailable(f"the report is longer than {limits.output_bytes >> 20} MiB; {limits.remedy}")
        return bytes(body), await errors
    finally:
        errors.cancel()


async def _ended(process: Process) -> None:
    """End the process if it still runs."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _failure(status: int, errors: str, limits: _Limits) -> Exception:
    if status == _REJECTED:
        return InvalidRequest(_REJECTION.sub("", errors).strip())
    if "MemoryError" in errors or "out of memory" in errors:
        return ReportUnavailable(f"the report needs more than {limits.memory_bytes >> 20} MiB; {limits.remedy}")
    return ReportFailed(status, errors)
