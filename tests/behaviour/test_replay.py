"""Replays real traces: the product accounts each pod exactly as its row says, however short it was."""

import asyncio
import csv
from itertools import pairwise
from pathlib import Path

import pytest

from gputally.aggregator.aggregator import RunningAggregator
from gputally_sim.cluster import SimCluster
from gputally_sim.trace.replay import Replay
from gputally_sim.trace.trace import read_nodes, read_trace
from tests.behaviour.traces import (
    Allocated,
    Polled,
    Row,
    accounted,
    aggregating,
    by_group,
    file,
    head,
    hours,
    joined,
    polled,
    query,
    rows_of,
    truth,
)
from tests.fakes.command import ROOT, Samples, fallen, scrape, sum_of
from tests.fakes.until import until

OPENB, HELIOS, PHILLY = "openb_pods", "helios15k_user", "philly15k_user"
OPENB_GPUS = 6212
MONDAY_US = 1_780_898_400 * 1_000_000
WAITED = "SELECT pod_uid, sum(to_us - from_us) FROM waits GROUP BY pod_uid"
UNBOUND = """
SELECT pod_uid, scheduled_us - created_us FROM allocations GROUP BY pod_uid HAVING revision = max(revision)
AND scheduled_us > created_us
"""
WAITS_APART = """
SELECT pod_uid FROM (
    SELECT pod_uid, from_us, lag(to_us) OVER (PARTITION BY pod_uid ORDER BY from_us) AS before FROM waits
)
WHERE before IS NOT NULL AND before <> from_us
"""
AS_FAST_AS_CAN_BE = 1e7
"""Simulated seconds per second: more than can be computed, so the simulation runs at full speed."""


@pytest.mark.parametrize("every", [15, 30, 60, 300])
@pytest.mark.parametrize("trace", [OPENB, HELIOS, PHILLY])
def test_polling_misses_as_much_as_published(trace: str, every: int) -> None:
    found = polled(rows_of(file(f"{trace}.csv.gz")), every)

    assert {"gpu_hours": found.gpu_hours, "never_seen": found.never_seen} == truth(trace)[f"poll_every_{every}s"]


@pytest.mark.parametrize(("trace", "skip"), [(OPENB, 6750), (HELIOS, 6900)])
async def test_every_pod_of_a_partial_trace_is_accounted_as_its_row_says(trace: str, skip: int, tmp_path: Path) -> None:
    part = head(file(f"{trace}.csv.gz"), tmp_path, skip=skip, count=300)

    scrapes = await replayed(part, tmp_path)

    rows = rows_of(part)
    assert Allocated(tmp_path / "ledger.db").by_pod == {row.name: row.time for row in rows}
    assert_sound(scrapes, sum(row.time for row in rows) / 1000)


async def test_every_second_that_a_pod_of_a_trace_waits_is_in_exactly_one_cause(tmp_path: Path) -> None:
    part, ledger = later(head(file(f"{HELIOS}.csv.gz"), tmp_path, skip=6900, count=300)), tmp_path / "ledger.db"

    scrapes = await replayed(part, tmp_path)

    assert dict(query(ledger, WAITED)) == dict(query(ledger, UNBOUND))
    assert len(query(ledger, WAITED)) > 100
    assert query(ledger, WAITS_APART) == []
    [(charged,)] = query(ledger, "SELECT sum(quantity * (to_us - from_us)) FROM waits")
    assert sum_of(scrapes[-1], "gputally_pending_gpu_seconds_total") >= charged / 1e12 - 1e-3
    assert charged / 1e9 == pytest.approx(sum(delay(i) * row.milli for i, row in enumerate(rows_of(part))), rel=1e-9)


def later(trace: Path) -> Path:
    """The trace with all starts delayed: its scheduler had bound each pod at once."""
    with trace.open() as lines:
        reader = csv.DictReader(lines)
        rows = list(reader)
    with trace.open("w", newline="") as out:
        writer = csv.DictWriter(out, reader.fieldnames or ())
        writer.writeheader()
        for i, row in enumerate(rows):
            writer.writerow(row | {name: str(int(row[name]) + delay(i)) for name in ("start", "end") if row[name]})
    return trace


def delay(i: int) -> int:
    """Seconds that the pod of a row waits."""
    return i * 37 % 600


@pytest.mark.e2e
async def test_the_whole_openb_trace_adds_up_to_its_published_totals(tmp_path: Path) -> None:
    path, expected = file(f"{OPENB}.csv.gz"), truth(OPENB)

    scrapes = await replayed(path, tmp_path, nodes=file("openb_nodes.csv.gz"))

    rows, found = rows_of(path), Allocated(tmp_path / "ledger.db")
    report(OPENB, rows, found)
    assert found.by_pod == {row.name: row.time for row in rows}
    assert len(found.by_pod) == expected["rows"]
    assert hours(sum(found.by_pod.values())) == expected["gpu_hours"]
    assert by_group(found.by_tier) == {
        qos.lower(): gpu_hours for qos, gpu_hours in expected["gpu_hours_by_qos"].items()
    }
    assert joined(rows, lambda row: row.status, found.by_pod) == expected["gpu_hours_by_status"]
    assert joined(rows, lambda row: row.gpu_type, found.by_pod) == expected["gpu_hours_by_gpu_type"]
    assert_sound(scrapes, sum(row.time for row in rows) / 1000)
    assert capacity(scrapes[-1]) == OPENB_GPUS


@pytest.mark.e2e
@pytest.mark.parametrize("trace", [HELIOS, pytest.param(PHILLY, marks=pytest.mark.campaign)])
async def test_a_whole_job_trace_adds_up_to_its_published_totals(trace: str, tmp_path: Path) -> None:
    path, expected = file(f"{trace}.csv.gz"), truth(trace)

    scrapes = await replayed(path, tmp_path)

    rows, found = rows_of(path), Allocated(tmp_path / "ledger.db")
    report(trace, rows, found)
    assert found.by_pod == {row.name: row.time for row in rows}
    assert len(found.by_pod) == expected["rows"]
    assert hours(sum(found.by_pod.values())) == expected["gpu_hours"]
    assert by_group(found.by_tenant) == expected["gpu_hours_by_tenant"]
    assert joined(rows, lambda row: row.status, found.by_pod) == expected["gpu_hours_by_status"]
    assert_sound(scrapes, sum(row.time for row in rows) / 1000)


async def replayed(trace: Path, scratch: Path, *, nodes: Path | None = None) -> list[Samples]:
    """Run the product during a whole replay; returns its scrapes, the final one included."""
    async with (
        SimCluster(seed=1, speed=AS_FAST_AS_CAN_BE, start_us=MONDAY_US) as cluster,
        aggregating(cluster, scratch) as running,
    ):
        await until(lambda: not running.ready().missing)
        replay = Replay(cluster.registry, read_trace(trace), read_nodes(nodes) if nodes else ())
        replay.begin()
        return await watched(cluster, replay, running)


async def watched(cluster: SimCluster, replay: Replay, running: RunningAggregator) -> list[Samples]:
    """Scrapes until the replay is over and accounted. Two final scrapes, since a new series starts at 0."""
    scrapes = await scraped_meanwhile(replay, running)
    await caught_up(cluster, running)
    url = f"http://{running.addresses[0]}"
    return [*scrapes, await scrape(url), await scrape(url)]


async def scraped_meanwhile(replay: Replay, running: RunningAggregator) -> list[Samples]:
    """Scrapes until the replay is over."""
    scrapes = list[Samples]()
    async with asyncio.timeout(180):
        while replay.progress < 1:
            scrapes.append(await scrape(f"http://{running.addresses[0]}"))
            await asyncio.sleep(0.2)
    return scrapes


async def caught_up(cluster: SimCluster, running: RunningAggregator) -> None:
    """Wait until all pod events so far are accounted; a watch that is recovering may take a while."""
    last = cluster.store.version_of("pods")
    async with asyncio.timeout(60):
        while accounted(running) < last:  # noqa: ASYNC110 - a version sends no signal
            await asyncio.sleep(0.02)


def assert_sound(scrapes: list[Samples], gpu_seconds: float) -> None:
    """No counter fell, the reconciliation difference is 0, and the counter is the truth plus the overcount."""
    for before, after in pairwise(scrapes):
        assert fallen(before, after) == []
    last = scrapes[-1]
    assert {
        name: value for name, value in last.items() if name.startswith("gputally_reconciliation_difference") and value
    } == {}
    overcount = last['gputally_overcount_gpu_seconds{counter="allocated"}']
    published = sum_of(last, "gputally_allocated_gpu_seconds_total")
    assert published == pytest.approx(gpu_seconds + overcount, abs=1e-3)


def capacity(samples: Samples) -> float:
    """Physical GPUs."""
    return sum_of(samples, "gputally_capacity_gpus") - sum_of(samples, "gputally_overcommitted_gpus")


def report(trace: str, rows: list[Row], found: Allocated) -> None:
    """Write what polling would report for the same trace, for people to read."""
    total = hours(sum(found.by_pod.values()))
    lines = [
        f"{trace}: {len(rows)} pods, {hours(sum(row.time for row in rows))} GPU-hours",
        f"  accounted: {len(found.by_pod)} pods, {total} GPU-hours",
    ]
    for every in (15, 60, 300):
        missed: Polled = polled(rows, every)
        never = f"{missed.never_seen} pods ({missed.never_seen / len(rows):.1%}, {missed.unseen_gpu_hours} GPU-hours)"
        lines.append(f"  polled every {every} s: {missed.gpu_hours} GPU-hours; never seen: {never}")
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    (folder / f"replay-{trace}.txt").write_text("\n".join(lines) + "\n")
