"""Real traces, their published totals, and the product's ledger; does not use the simulator's trace reader."""

import asyncio
import csv
import gzip
import json
import os
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gputally.aggregator.aggregator import RunningAggregator, aggregate
from gputally.aggregator.settings import Settings
from gputally.model.kube.kinds import Kind
from gputally_sim.cluster import SimCluster
from tests.fakes.kubeconfigs import kubeconfig

FOLDER = Path(os.environ.get("GPUTALLY_TRACES") or Path(__file__).parents[2] / "../shared/traces").resolve()
MICRO_GPU_US_PER_MILLI_S = 1_000 * 1_000_000
PER_GPU_HOUR = 3_600 * 1_000
"""In seconds x thousandths of a GPU."""
ALLOCATED = """
SELECT name, tier, tenant, quantity * (s.end_us - s.start_us)
FROM current_segments s JOIN allocations a USING (pod_uid, revision)
"""


class Row(NamedTuple):
    """A pod of a trace that ran."""

    name: str
    tenant: str
    qos: str
    gpu_type: str
    status: str
    milli: int
    start: int
    end: int

    @property
    def time(self) -> int:
        """Seconds x thousandths of a GPU."""
        return (self.end - self.start) * self.milli


def file(name: str) -> Path:
    """A trace file; skips the test if it does not exist."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"no {path}; GPUTALLY_TRACES names the folder of traces")
    return path


def truth(trace: str) -> dict[str, Any]:
    """The published totals of a trace."""
    found: dict[str, Any] = json.loads(file("ground_truth.json").read_text())[trace]
    return found


def rows_of(trace: Path) -> list[Row]:
    """The rows of pods that ran with GPUs."""
    with gzip.open(trace, "rt") if trace.suffix == ".gz" else trace.open() as lines:
        return [_row(row) for row in csv.DictReader(lines) if int(row["gpu_milli"]) and row["start"]]


def _row(row: dict[str, str]) -> Row:
    return Row(
        name=row["id"],
        tenant=row["tenant"],
        qos=row["qos"],
        gpu_type=row["gpu_type"],
        status=row["status"],
        milli=int(row["gpu_milli"]),
        start=int(row["start"]),
        end=int(row["end"]),
    )


def head(trace: Path, into: Path, *, count: int, skip: int = 0) -> Path:
    """A trace of some rows with GPUs; times are relative to its first submission."""
    with gzip.open(trace, "rt") as lines:
        reader = csv.DictReader(lines)
        kept = [row for row in reader if int(row["gpu_milli"])][skip : skip + count]
    zero = min(int(row["submit"]) for row in kept)
    path = into / "trace.csv"
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, reader.fieldnames or ())
        writer.writeheader()
        for row in kept:
            times = {name: str(int(row[name]) - zero) for name in ("submit", "start", "end") if row[name]}
            writer.writerow(row | times)
    return path


class Polled(NamedTuple):
    """What a poller reports for a trace if it multiplies samples by its interval."""

    gpu_hours: float
    never_seen: int
    unseen_gpu_hours: float


def polled(rows: Iterable[Row], every: int) -> Polled:
    """Poll every `every` seconds from 0 on; a pod is seen if it runs at that moment (its end is exclusive)."""
    samples = [(row, -(-row.end // every) - -(-row.start // every)) for row in rows]
    missed = [row for row, count in samples if not count]
    seconds = sum(row.milli * count * every for row, count in samples)
    return Polled(hours(seconds), len(missed), hours(sum(row.time for row in missed)))


def by_group(sums: Mapping[str, int]) -> dict[str, float]:
    """GPU-hours by group, without groups that are 0."""
    return {name: hours(time) for name, time in sums.items() if time}


def joined(rows: Iterable[Row], group: Callable[[Row], str], times: Mapping[str, int]) -> dict[str, float]:
    """Sum times by pod into GPU-hours by a group that only the rows have."""
    sums: Counter[str] = Counter()
    for row in rows:
        sums[group(row)] += times[row.name]
    return by_group(sums)


def hours(time: int) -> float:
    """GPU-hours, with as many digits as the published totals."""
    return round(time / PER_GPU_HOUR, 4)


class Allocated:
    """The allocations in the ledger, in seconds x thousandths of a GPU."""

    def __init__(self, ledger: Path) -> None:
        self.by_pod: Counter[str] = Counter()
        self.by_tier: Counter[str] = Counter()
        self.by_tenant: Counter[str] = Counter()
        for name, tier, tenant, amount in query(ledger, ALLOCATED):
            assert amount is not None, f"the allocation of {name} is still open"
            time, rest = divmod(amount, MICRO_GPU_US_PER_MILLI_S)
            assert rest == 0, f"{name}: {amount} is not a whole number of seconds"
            self.by_pod[name] += time
            self.by_tier[tier] += time
            self.by_tenant[tenant] += time


def query(ledger: Path, sql: str) -> list[tuple[Any, ...]]:
    """Rows of a ledger, read through a separate connection."""
    connection = sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


@asynccontextmanager
async def aggregating(cluster: SimCluster, scratch: Path) -> AsyncIterator[RunningAggregator]:
    """Run the product on the cluster with the demo's configuration; on exit its ledger is complete."""
    started = asyncio.get_running_loop().create_future()
    settings = Settings(
        config=Path(str(files("gputally.demo") / "examples" / "demo-trace.yaml")),
        prices=None,
        ledger=str(scratch / "ledger.db"),
        zero_s=0,
        kubeconfig=kubeconfig(scratch / "kube", cluster.url, {"token": "any"}),
        addresses=("127.0.0.1:0",),
    )
    task = asyncio.create_task(aggregate(settings, cluster.now_us, started=started.set_result))
    await asyncio.wait([task, started], return_when=asyncio.FIRST_COMPLETED, timeout=20)
    if task.done():
        await task
    try:
        yield await started
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def accounted(running: RunningAggregator) -> int:
    """The resource version up to which pods are accounted."""
    resume = running.pipeline.fleet.coverage.resumes.get(Kind.PODS)
    return int(resume.version) if resume else 0
