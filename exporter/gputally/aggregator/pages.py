"""The pages of the aggregator: its status, its links, and who has which GPUs now."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from aiohttp import web

from gputally.accounting.fleet.active_pods import PENDING, ActivePod
from gputally.aggregator.pipeline import Pipeline
from gputally.aggregator.settings import Settings
from gputally.answers.allocations import AllocationsNow
from gputally.model.api.paths import ALLOCATIONS_PATH, AT_RISK_PATH, PENDING_PATH, PREEMPTIONS_PATH
from gputally.model.health import AgentsHealth, Health, LedgerHealth, WatchHealth
from gputally.model.units import GPU, US_PER_SECOND
from gputally.process.clock import Clock
from gputally.web.filtered_routes import allocations_route, at_risk_route
from gputally.web.pending_routes import PENDING_PAGE_PATH
from gputally.web.report_routes import OPENAPI_PATH, PAGE_PATH
from gputally.web.server import StatusTable

_MOST_ROWS: Final = 50
PODS_PATH: Final = "/metrics/pods"
_LINKS: Final = (
    (PODS_PATH, "metrics by pod and by node, in the Prometheus format"),
    (ALLOCATIONS_PATH, "who holds or wants which GPUs now, as JSON"),
    (AT_RISK_PATH, "the work that a preemption would destroy now, by job and by node, as JSON"),
    (PREEMPTIONS_PATH, "pods that were preempted, evicted or lost with their node, as JSON"),
    (PENDING_PAGE_PATH, "pods that wait for GPUs, why, and what would help"),
    (PENDING_PATH, "the same as JSON"),
    (PAGE_PATH, "GPU-hours and cost of a period, and why they changed"),
    (OPENAPI_PATH, "description of the HTTP API (OpenAPI)"),
)
DASHBOARDS: Final = (
    ("gputally-fleet", "dashboard: capacity, utilisation and cost of the fleet"),
    ("gputally-tenants", "dashboard: GPU-hours and cost of tenants and jobs"),
    ("gputally-tiers", "dashboard: tiers and preemption"),
    ("gputally-pending", "dashboard: pods that wait for GPUs"),
    ("gputally-exporter", "dashboard: health of gputally"),
)
"""(UID, meaning) of dashboards in Grafana."""


def pod_sections(now: AllocationsNow, *, tenants: Collection[str] | None) -> list[StatusTable]:
    """Tables of pods and nodes. A user who is restricted to `tenants` sees only these, and nothing of the cluster."""
    pods = [pod for pod in now.active.pods() if tenants is None or pod.tenant in tenants]
    by_tenant = _groups("Tenants", "Tenant", ((pod.tenant, pod) for pod in pods))
    by_tier = _groups("Tiers", "Tier", ((pod.tier, pod) for pod in pods))
    return [by_tenant] if tenants is not None else [_capacity(now), *_label_conflicts(now), by_tier, by_tenant]


def health_sections(health: Health, now_us: int) -> list[StatusTable]:
    """Tables of the process itself."""
    watches = [_watch(each, now_us) for each in health.watches]
    return [
        StatusTable("Watches", ("Resource", "State", "Last activity"), watches),
        StatusTable("Agents", ("Agents", "Measured up to"), list(_agents(health.agents, now_us))),
        StatusTable("Ledger", ("Ledger", "Last write"), [_ledger(health.ledger, now_us)]),
    ]


def _capacity(now: AllocationsNow) -> StatusTable:
    states: dict[str, int] = {}
    for node in now.active.nodes:
        for state, quantity in node.parts:
            states[state] = states.get(state, 0) + quantity
    rows = [(state, f"{quantity / GPU:g}") for state, quantity in sorted(states.items())]
    return StatusTable(f"GPUs of {len(now.active.nodes)} nodes", ("State", "GPUs"), rows, numbers=True)


def _label_conflicts(now: AllocationsNow) -> Iterator[StatusTable]:
    """The nodes whose GPU labels contradict their units, if there are any."""
    rows = [(node.name, node.conflict.sentence) for node in now.active.nodes if node.conflict]
    if rows:
        yield StatusTable("Nodes with contradictory GPU labels", ("Node", "Why"), rows[:_MOST_ROWS])


def _groups(title: str, head: str, pods: Iterable[tuple[str, ActivePod]]) -> StatusTable:
    held: dict[str, int] = {}
    pending: dict[str, int] = {}
    for name, pod in pods:
        held[name] = held.get(name, 0) + (0 if pod.state == PENDING else pod.quantity)
        pending[name] = pending.get(name, 0) + (pod.state == PENDING)
    names = sorted(held, key=lambda name: (-held[name], name))[:_MOST_ROWS]
    rows = [(name, f"{held[name] / GPU:g}", str(pending[name])) for name in names]
    return StatusTable(title, (head, "GPUs", "Pending pods"), rows, numbers=True)


def _watch(watch: WatchHealth, now_us: int) -> tuple[str, str, str]:
    state = "connected" if watch.connected else "not connected"
    if watch.available is False:
        state = "not available"
    elif not watch.synced:
        state += ", no complete list yet"
    return watch.kind.value, state, _ago(watch.last_activity_us, now_us)


def _agents(agents: AgentsHealth, now_us: int) -> Iterator[tuple[str, str]]:
    """How many answer, and those that do not by name."""
    reachable = [each for each in agents.agents.values() if each.reachable]
    oldest = min((each.watermark_us for each in reachable if each.watermark_us is not None), default=None)
    yield f"{len(reachable)} of {len(agents.agents)} reachable", _ago(oldest, now_us)
    silent = sorted(node for node, each in agents.agents.items() if not each.reachable)
    for node in silent[:_MOST_ROWS]:
        yield f"{node}: not reachable", _ago(agents.agents[node].watermark_us, now_us)


def _ledger(ledger: LedgerHealth, now_us: int) -> tuple[str, str]:
    state = "writable" if ledger.writable else f"not writable, {ledger.waiting} rows wait"
    return state + (", damaged" if ledger.damaged else ""), _ago(ledger.last_write_us, now_us)


def _ago(us: int | None, now_us: int) -> str:
    return "never" if us is None else f"{max(0, now_us - us) // US_PER_SECOND} s ago"


def page_links(settings: Settings) -> Iterator[tuple[str, str]]:
    """(path, meaning) of the pages, and of the dashboards if it is known where Grafana is."""
    yield from ((path, meaning) for path, meaning in _LINKS if settings.pod_metrics or path != PODS_PATH)
    if settings.grafana:
        yield from ((f"{settings.grafana}/d/{uid}", meaning) for uid, meaning in DASHBOARDS)


def live_routes(pipeline: Pipeline, clock: Clock) -> Sequence[web.AbstractRouteDef]:
    """The routes of the aggregator; each request reads the accounting once."""
    return (
        allocations_route(lambda: allocations_now(pipeline, clock)),
        at_risk_route(lambda: pipeline.accountant.read_risk(now_us=clock())),
    )


def allocations_now(pipeline: Pipeline, clock: Clock) -> AllocationsNow:
    """The pods and nodes now."""
    at_us = clock()
    book = pipeline.fleet.book
    active = pipeline.accountant.read_active(now_us=at_us)
    return AllocationsNow(active, at_us, book.currency if book else "")
