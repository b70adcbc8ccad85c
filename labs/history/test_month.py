"""Two days of the trace in a real Prometheus: what it says is what the trace's rows say."""

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
ANSWERED = WINDOW.scrapes[-1] // agents.EVERY_S * agents.EVERY_S
"""When agents told something last, in seconds from the beginning."""
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


async def test_counters_never_fall_and_tell_the_hours_and_the_cost_of_each_tenant(
    load: Workload, tmp_path: Path
) -> None:
    data = tmp_path / "data"

    blocks.build(never_falling(month.files(WINDOW, load, tmp_path)), data, labels=month.LABELS)

    last = WINDOW.scrapes[-1]
    known = load.gpu_seconds(last - WINDOW.interval).keys()  # others are still 0, as every series at first
    seconds = {tenant: amount for tenant, amount in load.gpu_seconds(last).items() if tenant in known}
    async with bench.serving(data) as server:
        assert told(server, "gputally_allocated_gpu_seconds_total", at=last) == pytest.approx(seconds, rel=1e-12)
        costs = {tenant: float(PRICE * amount / PER_HOUR) for tenant, amount in seconds.items()}
        assert told(server, "gputally_allocated_cost_total", at=last) == pytest.approx(costs, rel=1e-12)
        assert all_of(server, "gputally_measured_gpu_seconds_total") == sum(load.gpu_seconds(ANSWERED).values())
        assert all_of(server, "gputally_unmatched_usage_gpu_seconds_total") == 0
        assert (
            server.api.query(
                "max(max_over_time(abs(gputally_reconciliation_difference_gpu_seconds)[2d:1m]))", at=WINDOW.end_s
            ).value
            == 0
        )
        for question in to_gputally(WINDOW, load):
            assert_within_an_interval(server, question, load)


async def test_the_peer_tells_what_a_poller_sees_and_what_pods_say_of_their_times(
    load: Workload, tmp_path: Path
) -> None:
    data = tmp_path / "data"

    blocks.build(peer.files(WINDOW, load, tmp_path), data, labels=peer.LABELS)

    async with bench.serving(data) as server:
        subquery, counting, times = (answered(server, question) for question in to_peer(WINDOW, load))
    assert subquery == pytest.approx(counting)
    assert counting == pytest.approx({tenant: hours for tenant, hours in polled(load).items() if hours})
    scraped = [job for job in load.jobs if job.start <= WINDOW.scrapes[-1]]
    assert times == pytest.approx(told_by_times(scraped))


async def test_rules_can_be_recorded_afterwards(load: Workload, tmp_path: Path) -> None:
    data, rules = tmp_path / "data", tmp_path / "rules.yaml"
    rules.write_text(RULES)
    blocks.build(month.files(WINDOW, load, tmp_path), data, labels=month.LABELS)
    async with bench.serving(data) as server:
        blocks.record([rules], data, url=server.url, window=WINDOW)
        await server.restart()

        for moment in (WINDOW.end_s - 36 * PER_HOUR, WINDOW.end_s - PER_HOUR):
            recorded = server.api.query("tenant:gputally_allocated_gpus:sum", at=moment).by("tenant")
            assert recorded == server.api.query("sum by (tenant) (gputally_allocated_gpus)", at=moment).by("tenant")
            assert any(recorded.values())


def never_falling(files: Iterable[Path]) -> Iterator[Path]:
    """The same files, each once its counters are looked at."""
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


def told(server: PrometheusServer, counter: str, *, at: int) -> dict[str, float]:
    """By tenant, without zeros."""
    answer = server.api.query(f"sum by (tenant) ({counter}) > 0", at=WINDOW.start_s + at)
    return {tenant: value for (tenant,), value in answer.by("tenant").items()}


def all_of(server: PrometheusServer, counter: str) -> float:
    return server.api.query(f"sum({counter})", at=WINDOW.end_s).value


def assert_within_an_interval(server: PrometheusServer, question: Question, load: Workload) -> None:
    """What happened after the last scrape is unknown to Prometheus.

    There it assumes the mean rate, or none. The true rate and the assumed one lie between 0 and the most GPUs that the
    tenant ever had, and the time is less than an interval. At the beginning nothing is unknown, as each series begins
    with 0; but one that begins in the last interval has a single sample, which tells of an interval more.
    """
    found = answered(server, question)
    price = float(PRICE) if "cost" in question.name else 1
    late = load.gpu_seconds(WINDOW.seconds - 2 * WINDOW.interval)
    for tenant, most in load.most_gpus(WINDOW.seconds).items():
        intervals = 1 if tenant in late else 2
        bound = intervals * WINDOW.interval * most / PER_HOUR * price
        assert found.get(tenant, 0) == pytest.approx(question.truth[tenant], abs=bound), f"{question.name}: {tenant}"


def answered(server: PrometheusServer, question: Question) -> dict[str, float]:
    """By tenant, without zeros."""
    answer = server.api.query(question.expression, at=WINDOW.end_s)
    return {tenant: value for (tenant,), value in answer.by(question.by).items() if value}


def told_by_times(jobs: Iterable[Job]) -> dict[str, float]:
    """GPU-hours by tenant, where a job whose end no scrape saw has not ended."""
    hours = dict[str, float]()
    for job in jobs:
        end = job.end if job.end <= WINDOW.scrapes[-1] else WINDOW.seconds
        hours[job.tenant] = hours.get(job.tenant, 0) + job.gpus * (end - job.start) / PER_HOUR
    return hours


def polled(load: Workload) -> dict[str, float]:
    """GPU-hours by tenant, were each job's state at a scrape to last for an interval."""
    scrapes, hours = WINDOW.scrapes, dict[str, float]()
    for job in load.jobs:
        seen = len([second for second in scrapes if job.start <= second < job.end])
        hours[job.tenant] = hours.get(job.tenant, 0) + seen * WINDOW.interval * job.gpus / PER_HOUR
    return hours
