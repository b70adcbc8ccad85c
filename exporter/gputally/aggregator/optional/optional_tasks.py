"""Which of the optional tasks of the aggregator are on."""

from collections.abc import Callable, Coroutine
from functools import partial

from gputally.aggregator.optional.budget_watch import budget_task
from gputally.aggregator.optional.ledger_retention import keep_rolled_up
from gputally.aggregator.optional.period_closer import PeriodCloser
from gputally.aggregator.optional.preemption_webhook import PreemptionWebhook, url_source
from gputally.aggregator.optional.room_lister import RoomLister
from gputally.aggregator.optional.workload_lookup import WorkloadLookup
from gputally.aggregator.pipeline import Pipeline
from gputally.aggregator.settings import Settings
from gputally.kube.api import Api
from gputally.model.kube.meta import Kind
from gputally.model.rules import Rules
from gputally.model.units import US_PER_DAY
from gputally.process.clock import Clock
from gputally.web.report_processes import ReportRunner

Background = Callable[[], Coroutine[None, None, None]]
"""A task that never ends."""


def optional_tasks(
    settings: Settings, rules: Rules, pipeline: Pipeline, *, api: Api, reports: ReportRunner, clock: Clock
) -> dict[str, Background]:
    """Those that are on, by name."""
    tasks: dict[str, Background] = {}
    if rules.closing is not None:
        tasks["closing"] = PeriodCloser(settings.ledger, rules.closing, pipeline, clock=clock).run
    if settings.retention_days:
        retention_us = settings.retention_days * US_PER_DAY
        tasks["ledger retention"] = partial(
            keep_rolled_up, pipeline.writer, retention_us=retention_us, closing=pipeline.health.closing, clock=clock
        )
    if settings.preemption_webhook:
        url = url_source(settings.preemption_webhook)
        tasks["preemption webhook"] = PreemptionWebhook(settings.ledger, pipeline, url, clock=clock).run
    if settings.explains_waits:
        tasks["room"] = RoomLister(api, pipeline, clock=clock).run
        if Kind.FAILED_CREATES in rules.watched:
            tasks["workloads without pods"] = WorkloadLookup(api, pipeline, clock=clock).run
    if rules.budgets:
        tasks["budgets"] = budget_task(settings, pipeline, reports)
    return tasks
