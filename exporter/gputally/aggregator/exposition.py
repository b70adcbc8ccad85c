"""The responses of the aggregator's `/metrics` and `/metrics/pods`."""

import asyncio

from gputally.accounting.disruptions.node_signals import EVENT_KINDS
from gputally.accounting.fleet.active_pods import Active
from gputally.accounting.fleet.snapshot import Snapshot
from gputally.aggregator.accountant import Accountant
from gputally.aggregator.intake import Intake
from gputally.aggregator.ledger_writer import LedgerWriter
from gputally.catalog.aggregator.pod_metrics import JOB_COST, view_of
from gputally.catalog.all import BUDGETS, FLEET, HEALTH, PODS
from gputally.exposition.process_metrics import process_registry, registry_text
from gputally.exposition.text_format import render, render_large
from gputally.model.health import Health
from gputally.process.clock import Clock


class Exposition:
    """Renders scrapes. Counters show only what is in the ledger, as the next process continues from there."""

    def __init__(
        self, intake: Intake, accountant: Accountant, writer: LedgerWriter, health: Health, *, clock: Clock
    ) -> None:
        self._intake = intake
        self._accountant = accountant
        self._writer = writer
        self._health = health
        self._clock = clock
        self._scraping = asyncio.Lock()
        self._rendering_pods = asyncio.Lock()
        self._registry = process_registry()
        self._committed = accountant.publish(now_us=accountant.fleet.evaluated_us, differences={})
        """The last published snapshot that is in the ledger; initially that of the earlier process."""
        self._caught_up = False

    @property
    def has_caught_up(self) -> bool:
        """Whether all events since the last process that affect GPU-time are accounted; stays true."""
        if not self._caught_up:
            counting = (watch for watch in self._health.watches if watch.kind not in EVENT_KINDS)
            self._caught_up = all(watch.initialized for watch in counting) and not self._intake.size
        return self._caught_up

    async def scrape(self, openmetrics: bool) -> bytes:  # noqa: FBT001 - required by the web interface
        """The current exposition. Its counters are in the ledger before it is returned.

        Counters stay constant while the ledger is not writable, and until all events since the last process are
        accounted: a pod that ended meanwhile would still be counted. Gauges stay current.
        """
        async with self._scraping:  # of two concurrent scrapes, one might withdraw what the other has returned
            now_us = self._clock() if self.has_caught_up else self._accountant.fleet.evaluated_us
            snapshot = self._accountant.publish(now_us=now_us, differences=self._writer.differences)
            if self._health.ledger.writable:
                text = await self._written_with(snapshot, openmetrics=openmetrics)
            if self._health.ledger.writable:
                self._committed = snapshot
                return text
            self._accountant.fleet.withdraw_published()
            return self._text(snapshot, counters=self._committed, openmetrics=openmetrics)

    async def scrape_pods(self, openmetrics: bool) -> bytes:  # noqa: FBT001 - required by the web interface
        """The series by pod and by node. All are gauges, so they need no ledger; a thread renders their large text."""
        active = self._accountant.read_active(now_us=self._clock())
        async with self._rendering_pods:
            return await asyncio.to_thread(_pods_text, active, openmetrics=openmetrics)

    async def _written_with(self, snapshot: Snapshot, *, openmetrics: bool) -> bytes:
        """The exposition of `snapshot`, rendered while the ledger is written."""
        writing = asyncio.create_task(self._writer.flush(), name="scrape's flush")
        try:
            await asyncio.sleep(0)  # start the flush, which mostly runs without the GIL
            return self._text(snapshot, counters=snapshot, openmetrics=openmetrics)
        finally:
            await writing

    def _text(self, snapshot: Snapshot, *, counters: Snapshot, openmetrics: bool) -> bytes:
        self._health.queued = self._intake.size
        fleet = ((metric, metric.rows(counters if metric.grows else snapshot)) for metric in FLEET)
        own = ((metric, metric.rows(self._health)) for metric in HEALTH)
        budgets = self._health.budgets
        spent = ((metric, metric.rows(budgets)) for metric in BUDGETS) if budgets else ()
        more = registry_text(self._registry, openmetrics=openmetrics)
        return render((*fleet, *spent, *own), openmetrics=openmetrics, more=more)


def _pods_text(active: Active, *, openmetrics: bool) -> bytes:
    view = view_of(active)
    shown = (metric for metric in PODS if view.costs or metric is not JOB_COST)
    return render_large(((metric, metric.rows(view)) for metric in shown), openmetrics=openmetrics)
