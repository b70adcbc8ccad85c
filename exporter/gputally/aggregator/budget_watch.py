"""Evaluates the budgets now and then, in a process of its own, and keeps the values for the scrapes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import datetime
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct

from gputally.aggregator.pipeline import Pipeline
from gputally.aggregator.settings import Settings
from gputally.answers.parameters import InvalidRequest
from gputally.errors import ConfigError, Problem
from gputally.model.budgets import Budget, BudgetsHealth, BudgetValues
from gputally.model.periods import PeriodLength
from gputally.model.units import to_datetime
from gputally.questions.own import BudgetsNow
from gputally.web.ledger_process import ReportUnavailable
from gputally.web.report_processes import ReportRunner

logger = logging.getLogger(__name__)

_LONGEST_DAYS: Final = {
    PeriodLength.WEEK: 7,
    PeriodLength.MONTH: 31,
    PeriodLength.QUARTER: 92,
    PeriodLength.YEAR: 366,
}
READY_SECONDS: Final = 1.0
"""Pause before asking again whether the lists are complete."""
Evaluate = Callable[[], Awaitable[bytes]]
"""Returns what `gputally budgets --output json` prints. Raises: InvalidRequest, ReportUnavailable, OSError."""


class _BudgetsDocument(Struct):
    """What is read of the JSON."""

    accounted: datetime
    budgets: tuple[BudgetValues, ...]


def budget_task(
    settings: Settings, pipeline: Pipeline, reports: ReportRunner
) -> Callable[[], Coroutine[None, None, None]]:
    """The task that keeps the budgets of the configuration evaluated in the health of `pipeline`.

    Raises: ConfigError for budgets whose periods begin before the retention, within a day in UTC.
    """
    if settings.retention_days:
        _require_detail(pipeline.fleet.rules.budgets, settings.retention_days, file=str(settings.config))
    pipeline.health.budgets = budgets = BudgetsHealth(started=to_datetime(pipeline.fleet.now_us))
    question = BudgetsNow(configuration=str(settings.config or ""), prices=str(settings.prices or ""))
    return partial(
        keep_evaluated,
        partial(reports.budgets, question),
        budgets,
        ready=lambda: pipeline.exposition.has_caught_up,
        interval_s=settings.budgets_interval_s,
    )


def _require_detail(budgets: Iterable[Budget], retention_days: int, *, file: str) -> None:
    """Require UTC for budgets that begin before the retention, which keeps sums of days in UTC. Raises: ConfigError."""
    remedy = f"must be UTC, as --ledger.retention {retention_days}d keeps no single allocations of a whole"
    problems = [
        Problem(file, f"budgets[{index}].time_zone", f"{remedy} {each.period}; or keep more")
        for index, each in enumerate(budgets)
        if each.time_zone != "UTC" and retention_days <= _LONGEST_DAYS[each.period]
    ]
    if problems:
        raise ConfigError(problems)


async def keep_evaluated(
    evaluate: Evaluate, health: BudgetsHealth, *, ready: Callable[[], bool], interval_s: float
) -> None:
    """Forever, once `ready`: evaluate. A failure is counted and leaves the values; the first in a row is logged."""
    while not ready():  # noqa: ASYNC110 - no event signals the condition
        await asyncio.sleep(READY_SECONDS)
    failed = False
    while True:
        try:
            document = msgspec.json.decode(await evaluate(), type=_BudgetsDocument)
            health.values, health.accounted, failed = document.budgets, document.accounted, False
        except (InvalidRequest, ReportUnavailable, msgspec.MsgspecError, OSError) as error:
            health.failures += 1
            if not failed:
                logger.warning("budgets are not evaluated, their metrics keep the last values: %s", error)
            failed = True
        await asyncio.sleep(interval_s)
