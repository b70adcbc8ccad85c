"""The aggregator: connects watches, accounting, metrics and ledger, and starts the optional tasks that are on."""

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from gputally import __version__
from gputally.accounting.changes import Saved
from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.fleet.pending_now import PendingNow, read_pending
from gputally.accounting.fleet.restore import at_present
from gputally.accounting.prices.book import PriceBook
from gputally.aggregator.agent_client import agent_client, client_certificate_expiry
from gputally.aggregator.agent_pulls import puller
from gputally.aggregator.budget_watch import budget_task
from gputally.aggregator.intake import Intake
from gputally.aggregator.ledger_maintenance import keep_added_up, keep_checked, keep_rolled_up
from gputally.aggregator.owner_lookup import OwnerWalk
from gputally.aggregator.pages import PODS_PATH, allocations_now, health_sections, live_routes, page_links, pod_sections
from gputally.aggregator.period_closer import PeriodCloser
from gputally.aggregator.pipeline import Pipeline, assemble, watched_by
from gputally.aggregator.preemption_webhook import PreemptionWebhook, url_source
from gputally.aggregator.room_lister import RoomLister
from gputally.aggregator.settings import AgentOptions, Settings, require_usd
from gputally.aggregator.workload_lookup import WorkloadLookup
from gputally.answers.past_pods import LedgerPods
from gputally.config.read import read_files
from gputally.config.rules_file import with_agents, with_watched
from gputally.kube.api import Api
from gputally.kube.connection import Choice, connect
from gputally.kube.failures import Backoff
from gputally.kube.identify import identify
from gputally.kube.reflector import Batches, run_reflector
from gputally.kube.server_time import CONFIRMED_US, ServerTime, keep_confirmed, wait_until_confirmed
from gputally.kube.watched import Resource, unwatched
from gputally.ledger.open_to_write import open_ledger
from gputally.ledger.protocol import Ledger
from gputally.model.kube.kinds import Kind
from gputally.model.rules import Rules
from gputally.model.units import US_PER_DAY, US_PER_SECOND
from gputally.process.clock import Clock
from gputally.web import server
from gputally.web.access_policy import AccessPolicy, policy_source
from gputally.web.openapi import PENDING_DESCRIBED
from gputally.web.pending_routes import BODIES, PendingRoutes
from gputally.web.report_processes import ReportRunner
from gputally.web.report_routes import report_routes
from gputally.web.server import METRICS_PATH, Readiness, Site, serve
from gputally.web.turns import in_thread

if TYPE_CHECKING:
    from gputally.process.addresses import Address

Background = Callable[[], Coroutine[None, None, None]]
"""A task that never ends."""
logger = logging.getLogger(__name__)
_TIME_PATH: Final = "/api/v1/namespaces"
"""Requested only for the server's time; the aggregator's permissions include it."""
CATCH_UP_SECONDS: Final = 0.1
"""How soon a server sends the missed events of a resumed watch. It does not mark their end; if one arrives later, its
pods are reaccounted."""
_USUAL_THRESHOLDS: Final = gc.get_threshold()
_STARTING_THRESHOLD: Final = 50_000
"""Threshold of the garbage collector during the initial lists, which create little garbage."""


def optional_tasks(
    settings: Settings, rules: Rules, pipeline: Pipeline, *, api: Api, reports: ReportRunner, clock: Clock
) -> dict[str, Background]:
    """The optional tasks that are on, by name."""
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


class RunningAggregator:
    """A running aggregator: its pipeline, addresses, access policies and reports."""

    def __init__(self, pipeline: Pipeline, policy_source: Callable[[], AccessPolicy], reports: ReportRunner) -> None:
        self.pipeline = pipeline
        self.policy_source = policy_source
        self.reports = reports
        self.addresses: tuple[Address, ...] = ()
        self._complete = False

    def ready(self) -> Readiness:
        """Ready once every available watch has a complete list and all of it is accounted; stays ready from then on."""
        pipeline = self.pipeline
        missing = [
            f"watch {watch.kind}: no complete list yet" for watch in pipeline.health.watches if not watch.initialized
        ]
        if pipeline.intake.size and not self._complete:
            missing.append(f"accounting: {pipeline.intake.size} observations behind")
        if not pipeline.writer.room.is_set():
            waiting = pipeline.health.ledger.waiting
            missing.append(f"ledger: {waiting} rows wait to be written, the watches are paused")
        self._complete = self._complete or not missing
        return Readiness(tuple(missing))


async def aggregate(
    settings: Settings, clock: Clock | None = None, *, started: Callable[[RunningAggregator], None] | None = None
) -> None:
    """Run until cancelled; the first task that fails ends all. Uses the API server's time, unless `clock` is given.

    Raises: ConfigError, ApiError, LedgerError or AddressTaken before the start; LedgerError also later.
    """
    policies = policy_source(settings.web_config)
    rules, book = _configuration(settings)
    server_time = ServerTime()
    on_answer, clock = (None, clock) if clock else (server_time.observe, server_time.now_us)
    pulled = replace(settings.agents, mig_basis=rules.mig_basis)
    choice = Choice(kubeconfig=settings.kubeconfig, context=settings.context)
    with _rare_collection(), open_ledger(settings.ledger) as ledger:
        async with connect(choice, on_answer=on_answer) as api, agent_client(pulled) as client:
            cluster = await identify(api, rules, patience_s=settings.api_patience_s)
            request = partial(api.request_on_new_connection, _TIME_PATH, {"limit": "1"})
            patience_s = CONFIRMED_US / US_PER_SECOND + settings.api_patience_s
            await wait_until_confirmed(server_time, request, patience_s=patience_s)
            ledger.bind(cluster)
            saved = _saved(ledger, now_us=clock())
            zero_us, explains_waits = settings.zero_s * US_PER_SECOND, settings.explains_waits
            fleet = Fleet(rules=rules, book=book, saved=saved, zero_us=zero_us, explains_waits=explains_waits)
            fleet.count_job_costs(is_on=settings.training_job_cost)
            pipeline = _pipeline(fleet, ledger, clock=clock)
            pipeline.health.clock = server_time.health
            pipeline.health.certificates = _certificates(policies, pulled)
            try:
                agents, reports = puller(client, pipeline, pulled, clock=clock), ReportRunner(settings.ledger)
                background: dict[str, Background] = {
                    "agents": partial(agents.run, interval_s=settings.agents.interval_s),
                    "time": partial(keep_confirmed, server_time, request),
                    **optional_tasks(settings, rules, pipeline, api=api, reports=reports, clock=clock),
                }
                running = RunningAggregator(pipeline, policies, reports)
                await _run(api, running, settings, clock=clock, background=background, started=started)
            finally:
                pipeline.writer.close()


def _configuration(settings: Settings) -> tuple[Rules, PriceBook | None]:
    rules, book = read_files(settings.config, settings.prices)
    require_usd(settings, book)
    return with_watched(with_agents(rules, settings.agent_marks), settings.watched), book


@contextmanager
def _rare_collection() -> Iterator[None]:
    """Run the garbage collector rarely, until the block ends or all lists are complete."""
    gc.set_threshold(_STARTING_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*_USUAL_THRESHOLDS)


def _pipeline(fleet: Fleet, ledger: Ledger, *, clock: Clock) -> Pipeline:
    watched = watched_by(fleet)
    first = [resource.kind for resource in watched if resource.is_first]
    return assemble(fleet, ledger, clock=clock, watches=tuple(map(unwatched, watched)), first=first)


def _certificates(policies: Callable[[], AccessPolicy], pulled: AgentOptions) -> dict[str, Callable[[], int | None]]:
    client = client_certificate_expiry(pulled)
    return {"server": lambda: policies().expires_s} | ({"agents": client} if client else {})


def _saved(ledger: Ledger, *, now_us: int) -> Saved:
    """The state saved in the ledger, evaluated at the present."""
    saved = ledger.saved(now_us=now_us)
    present = at_present(saved, now_us=now_us)
    if present is not saved:
        logger.warning(
            "the ledger is %d s ahead of the API server's time, which was wrong then or is wrong now; accounting "
            "continues from the present, and counters stay at their last values until that time is reached",
            (saved.evaluated_us - now_us) // US_PER_SECOND,
        )
    return present


async def _run(
    api: Api,
    running: RunningAggregator,
    settings: Settings,
    *,
    clock: Clock,
    background: Mapping[str, Background],
    started: Callable[[RunningAggregator], None] | None,
) -> None:
    """Serve and run all tasks; `background` holds further ones by name."""
    site = _site(running, settings, clock)
    serving = serve(site, addresses=settings.addresses, policy_source=running.policy_source)
    async with running.reports, serving as addresses, asyncio.TaskGroup() as tasks:
        running.addresses = addresses
        if started:
            started(running)
        intake, accountant, writer, _, health = pipeline = running.pipeline
        owners = OwnerWalk(api, pipeline, clock=clock)
        tasks.create_task(account(pipeline), name="account")
        tasks.create_task(accountant.keep_reconciled(then=owners.step), name="reconcile")
        tasks.create_task(owners.run(), name="owners")
        tasks.create_task(writer.keep_flushed(), name="ledger")
        tasks.create_task(keep_checked(writer.ledger.check, health.ledger, clock=clock), name="ledger check")
        tasks.create_task(keep_added_up(writer), name="ledger sums")
        watch_all(api, pipeline, clock=clock, tasks=tasks)
        tasks.create_task(intake.release(), name="release")
        tasks.create_task(freeze_heap(intake), name="freeze heap")
        for name, run in background.items():
            tasks.create_task(run(), name=name)


async def account(pipeline: Pipeline) -> None:
    """Forever: observe queued batches, and yield to other tasks after each."""
    while True:
        batch = await pipeline.intake.get()
        pipeline.accountant.take(batch)
        pipeline.intake.accounted(batch)
        await asyncio.sleep(0)
        await pipeline.writer.room.wait()


def watch_all(api: Api, pipeline: Pipeline, *, clock: Clock, tasks: asyncio.TaskGroup) -> None:
    """Start all watches: pods are read while the objects that classify them are accounted, other kinds afterwards."""
    fleet, intake = pipeline.fleet, pipeline.intake
    for resource, health in zip(watched_by(fleet), pipeline.health.watches, strict=True):
        since = fleet.resume_of(resource.kind) if resource.resumes else None
        if since:  # the ledger has the state; only missed events are due
            asyncio.get_running_loop().call_later(CATCH_UP_SECONDS, intake.listed[resource.kind].set)
        feed = run_reflector(api, resource, health=health, clock=clock, backoff=Backoff(), resume=since)
        tasks.create_task(_pump(feed, intake, resource), name=f"watch {resource.kind}")


async def _pump(feed: Batches, intake: Intake, resource: Resource) -> None:
    """Queue what a watch observes; its first request is sent only now.

    No list may wait for others while it is read: a server aborts it when its client has read nothing for a minute.
    """
    put = intake.put if resource.reads_ahead else intake.put_and_wait
    if not resource.reads_ahead:
        await intake.released.wait()
    async with aclosing(feed) as batches:
        async for batch in batches:
            await put(batch, resource.kind)


async def freeze_heap(intake: Intake) -> None:
    """After all lists are complete, exempt long-lived objects, some 100 per pod, from garbage collection.

    Otherwise the collector traverses them all now and then, in the middle of a scrape. A few hundred frozen objects
    are garbage: collecting them first would add 40 ms to a start with 20,000 pods.
    """
    for listed in intake.listed.values():
        await listed.wait()
    gc.freeze()
    gc.set_threshold(*_USUAL_THRESHOLDS)


def _pending(pipeline: Pipeline, clock: Clock, *, with_room: bool) -> PendingNow:
    return read_pending(pipeline.fleet, now_us=clock(), with_room=with_room)


async def _sections(
    running: RunningAggregator, clock: Clock, tenants: frozenset[str] | None
) -> Sequence[server.StatusTable]:
    """The tables of the status page; a thread derives the pods."""
    pipeline = running.pipeline
    now = allocations_now(pipeline, clock)
    own = health_sections(pipeline.health, now.at_us) if tenants is None else []
    return [*await in_thread(partial(pod_sections, tenants=tenants), now), *own]


def _site(running: RunningAggregator, settings: Settings, clock: Clock) -> Site:
    exposition = running.pipeline.exposition
    by_pod = {PODS_PATH: exposition.scrape_pods} if settings.pod_metrics else {}
    return Site(
        title="gputally aggregator",
        about="Accounts allocated GPUs and their cost by priority tier and tenant.",
        version=__version__,
        scrapes={METRICS_PATH: exposition.scrape, **by_pod},
        ready=running.ready,
        sections=partial(_sections, running, clock),
        routes=(
            *live_routes(running.pipeline, clock),
            *PendingRoutes(partial(_pending, running.pipeline, clock), LedgerPods(settings.ledger)).routes(),
            *report_routes(running.reports, version=__version__, more=PENDING_DESCRIBED),
        ),
        bodies=BODIES,
        links=tuple(page_links(settings)),
        max_requests=settings.max_requests,
    )
