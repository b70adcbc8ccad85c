"""Two days of the trace in a real Prometheus: query results equal the trace's rows."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from labs.history import agents, bench, blocks, month, peer, workload
from labs.history.questions import PER_HOUR, Question, to_gputally, to_peer
from labs.history.window import Window
from labs.history.workload import Job, Workload
from tests.behaviour.product import PRICE
from tests.behaviour.traces import file
from tests.prometheus.server import PrometheusServer

pytestmark = pytest.mark.e2e

WINDOW = Window(days=2)
LAST_REPORT = WINDOW.scrapes[-1] // agents.EVERY_S * agents.EVERY_S
"""Time of the last agent reports, in seconds from the start."""
GROWING = (b"_total", b"_bucket", b"_count", b"_sum")
RULES = """
groups:
  - name: tenants
    rules:
      - record: tenant:gputally_allocated_gpus:sum
        expr: sum by (tenant) (gputally_allocated_gpus)
"""


@pytest.fixture(scope="module")
def load() -> Workload:
    return workload.read(WINDOW, file(workload.TRACE.name))


async def test_counters_never_decrease_and_show_the_hours_and_cost_of_each_tenant(
    load: Workload, tmp_path: Path
) -> None:
    data = tmp_path / "data"

    blocks.build(never_falling(month.files(WINDOW, load, tmp_path)), data, labels=month.LABELS)

    last = WINDOW.scrapes[-1]
    known = load.gpu_seconds(last - WINDOW.interval).keys()  # the first sample of every series is 0
    seconds = {tenant: amount for tenant, amount in load.gpu_seconds(last).items() if tenant in known}
    async with bench.serving(data) as server:
        assert sum_by_tenant(server, "gputally_allocated_gpu_seconds_total", at=last) == pytest.approx(
            seconds, rel=1e-12
        )
        costs = {tenant: float(PRICE * amount / PER_HOUR) for tenant, amount in seconds.items()}
        assert sum_by_tenant(server, "gputally_allocated_cost_total", at=last) == pytest.approx(costs, rel=1e-12)
        assert all_of(server, "gputally_measured_gpu_seconds_total") == sum(load.gpu_seconds(LAST_REPORT).values())
        assert all_of(server, "gputally_unmatched_usage_gpu_seconds_total") == 0
        assert (
            server.api.query(
                "max(max_over_time(abs(gputally_reconciliation_difference_gpu_seconds)[2d:1m]))", at=WINDOW.end_s
            ).value
            == 0
        )
        for question in to_gputally(WINDOW, load):
            assert_within_an_interval(server, question, load)


async def test_the_peer_shows_polled_states_and_the_times_of_pods(load: Workload, tmp_path: Path) -> None:
    data = tmp_path / "data"

    blocks.build(peer.files(WINDOW, load, tmp_path), data, labels=peer.LABELS)

    async with bench.serving(data) as server:
        subquery, counting, times = (answered(server, question) for question in to_peer(WINDOW, load))
    assert subquery == pytest.approx(counting)
    assert counting == pytest.approx({tenant: hours for tenant, hours in polled(load).items() if hours})
    scraped = [job for job in load.jobs if job.start <= WINDOW.scrapes[-1]]
    assert times == pytest.approx(expected_by_times(scraped))


async def test_rules_can_be_backfilled(load: Workload, tmp_path: Path) -> None:
    data, rules = tmp_path / "data", tmp_path / "rules.yaml"
    rules.write_text(RULES)
    blocks.build(month.files(WINDOW, load, tmp_path), data, labels=month.LABELS)
    async with bench.serving(data) as server:
        blocks.record([rules], data, url=server.url, span=(WINDOW.start_s, WINDOW.end_s))
        await server.restart()

        for moment in (WINDOW.end_s - 36 * PER_HOUR, WINDOW.end_s - PER_HOUR):
            recorded = server.api.query("tenant:gputally_allocated_gpus:sum", at=moment).by("tenant")
            assert recorded == server.api.query("sum by (tenant) (gputally_allocated_gpus)", at=moment).by("tenant")
            assert any(recorded.values())


def never_falling(files: Iterable[Path]) -> Iterator[Path]:
    """Pass the files through, and assert that counters never decrease."""
    latest = dict[bytes, float]()
    for path in files:
        for line in path.read_bytes().splitlines():
            series, _, rest = line.rpartition(b" ")[0].rpartition(b" ")
            if series.partition(b"{")[0].endswith(GROWING):
                value = float(rest)
                assert value >= latest.get(series, 0), f"{line!r} after {latest[series]}"
                latest[series] = value
        yield path
    assert any(latest.values())


def sum_by_tenant(server: PrometheusServer, counter: str, *, at: int) -> dict[str, float]:
    """The counter by tenant, without zeros."""
    answer = server.api.query(f"sum by (tenant) ({counter}) > 0", at=WINDOW.start_s + at)
    return {tenant: value for (tenant,), value in answer.by("tenant").items()}


def all_of(server: PrometheusServer, counter: str) -> float:
    return server.api.query(f"sum({counter})", at=WINDOW.end_s).value


def assert_within_an_interval(server: PrometheusServer, question: Question, load: Workload) -> None:
    """Assert that errors are only due to the time after the last scrape, which Prometheus does not know.

    Prometheus extrapolates it with the mean rate or with 0. The true and the assumed rate are between 0 and the
    tenant's maximum GPUs, and the time is less than one interval. There is no error at the start, because each series
    starts with 0. A series that starts in the last interval has a single sample, so one more interval is unknown.
    """
    found = answered(server, question)
    price = float(PRICE) if "cost" in question.name else 1
    late = load.gpu_seconds(WINDOW.seconds - 2 * WINDOW.interval)
    for tenant, most in load.most_gpus(WINDOW.seconds).items():
        intervals = 1 if tenant in late else 2
        bound = intervals * WINDOW.interval * most / PER_HOUR * price
        assert found.get(tenant, 0) == pytest.approx(question.truth[tenant], abs=bound), f"{question.name}: {tenant}"


def answered(server: PrometheusServer, question: Question) -> dict[str, float]:
    """The query result by tenant, without zeros."""
    answer = server.api.query(question.expression, at=WINDOW.end_s)
    return {tenant: value for (tenant,), value in answer.by(question.by).items() if value}


def expected_by_times(jobs: Iterable[Job]) -> dict[str, float]:
    """GPU-hours by tenant; a job whose end was not scraped counts as running."""
    hours = dict[str, float]()
    for job in jobs:
        end = job.end if job.end <= WINDOW.scrapes[-1] else WINDOW.seconds
        hours[job.tenant] = hours.get(job.tenant, 0) + job.gpus * (end - job.start) / PER_HOUR
    return hours


def polled(load: Workload) -> dict[str, float]:
    """GPU-hours by tenant if each job's state at a scrape lasts for one interval."""
    scrapes, hours = WINDOW.scrapes, dict[str, float]()
    for job in load.jobs:
        seen = len([second for second in scrapes if job.start <= second < job.end])
        hours[job.tenant] = hours.get(job.tenant, 0) + seen * WINDOW.interval * job.gpus / PER_HOUR
    return hours
