"""Tasks of the aggregator that settings or the configuration turn on."""

from collections.abc import Callable, Coroutine
from functools import partial

from gputally.aggregator.ledger_retention import keep_rolled_up
from gputally.aggregator.period_closer import PeriodCloser
from gputally.aggregator.pipeline import Pipeline
from gputally.aggregator.settings import Settings
from gputally.model.rules import Rules
from gputally.model.units import US_PER_DAY
from gputally.process.clock import Clock

Background = Callable[[], Coroutine[None, None, None]]
"""A task that never ends."""


def optional_tasks(settings: Settings, rules: Rules, pipeline: Pipeline, *, clock: Clock) -> dict[str, Background]:
    """Those that are on, by name."""
    tasks: dict[str, Background] = {}
    if rules.closing is not None:
        tasks["closing"] = PeriodCloser(settings.ledger, rules.closing, pipeline, clock=clock).run
    if settings.retention_days:
        retention_us = settings.retention_days * US_PER_DAY
        tasks["ledger retention"] = partial(
            keep_rolled_up, pipeline.writer, retention_us=retention_us, closing=pipeline.health.closing, clock=clock
        )
    return tasks
