"""Answers questions to the ledger from processes of their own, so that they never delay a scrape or an event."""

import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from msgspec import Struct

from gputally.questions.ledger_question import LedgerQuestion
from gputally.questions.own import BudgetsNow, PeriodNow
from gputally.web.ledger_process import (
    MEMORY_BYTES,
    OUTPUT_BYTES,
    TIMEOUT_SECONDS,
    LedgerProcess,
    Limits,
    ReportFailed,
    ReportUnavailable,
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
_SHORTER: Final = "choose a shorter `period` in the section `closing`"

logger = logging.getLogger(__name__)


class ReportRunner:
    """Answers one question to the ledger at this URL at a time; a context, at whose end its process ends."""

    def __init__(self, ledger: str) -> None:
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

    def keep_also(self, question: LedgerQuestion, *, of: LedgerQuestion) -> None:
        """Answer this question from the kept body `of` the same one without a cut-off, for as long as that itself."""
        if of in self._kept:
            self._keep(question, self._kept[of])

    def _keep(self, question: LedgerQuestion, kept: tuple[float, bytes]) -> None:
        self._kept.pop(question, None)
        while len(self._kept) >= _MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[question] = kept

    async def budgets(self, question: BudgetsNow) -> bytes:
        """What `gputally budgets` prints as JSON; it takes turns with the questions of clients.

        Only for the process itself, which always gets its turn. Raises: InvalidRequest, ReportUnavailable.
        """
        limits = Limits(MEMORY_BYTES, OUTPUT_BYTES, TIMEOUT_SECONDS, "run gputally budgets on a copy of the ledger")
        async with self._turns.turn():
            return await _own_answer(self._process, question, limits)

    async def _fresh(self, question: LedgerQuestion) -> bytes:
        try:
            body = await self._process.answer(question)
        except ReportFailed as error:
            logger.error("a report failed with exit status %d: %s", error.status, error.errors)  # noqa: TRY400 - its own
            raise
        self._keep(question, (time.monotonic(), body))
        return body


async def preview_period(ledger: str, question: PeriodNow) -> bytes:
    """What `gputally periods --preview` prints as JSON, from a process of its own.

    Raises: InvalidRequest, ReportUnavailable.
    """
    limits = Limits(PREVIEW_MEMORY_BYTES, PREVIEW_BYTES, PREVIEW_SECONDS, _SHORTER)
    return await _own_answer(LedgerProcess(ledger), question, limits)


async def _own_answer(process: LedgerProcess, question: Struct, limits: Limits) -> bytes:
    """What the aggregator itself asks, whose errors are for its log; then the process ends, as nobody follows up."""
    try:
        return await process.answer(question, limits)
    except ReportFailed as error:
        raise ReportUnavailable(error.errors) from None
    finally:
        await process.end()
