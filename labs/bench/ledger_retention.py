"""Measures how a year of allocations is rolled up: `python -m labs.bench.ledger_retention FOLDER PODS`.

Pods of jobs of eight run for three hours in the median, each with four revisions and hours of usage, for a year. The
last 62 days stay in detail. Reports of the year are read before and after, and writes are made while it is rolled up.
"""

import argparse
import random
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles

from msgspec.structs import replace

from gputally.accounting.changes import Changes
from gputally.ledger.open import open_reader
from gputally.ledger.records import Window
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.allocation import Segment, State
from gputally.model.pod_record import PodRecord
from gputally.model.units import GPU, US_PER_DAY, US_PER_HOUR, US_PER_SECOND
from gputally.model.usage import AssignmentHour
from labs.bench.figure import Figure, line
from tests.contract.records import PRICE, pod, segment
from tests.contract.test_usage import ASSIGNMENT, HOUR

DAYS, KEPT_DAYS = 365, 62
BATCH = 500
START_US = 20_000 * US_PER_DAY
SEGMENT = segment(0, 0)
BY = (("tenant",), ("tenant", "tier", "state"), ("namespace", "job_kind", "job"))


def main() -> int:
    """Fill a ledger, roll it up and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m labs.bench.ledger_retention", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pods", type=int)
    plan = parser.parse_args()
    for figure in measure(plan.folder / "ledger.db", plan.pods):
        sys.stdout.write(f"{line(figure)}\n")
        sys.stdout.flush()
    return 0


def measure(path: Path, pods: int) -> Iterator[Figure]:
    """Fill, read, roll up, and read again. Raises: ArithmeticError if the sums differ."""
    with SqliteLedger(path) as ledger:
        for first in range(0, pods, BATCH):
            fill(ledger, range(first, min(first + BATCH, pods)), pods)
    yield Figure("retention.size_before_mb", path.stat().st_size / 1e6, "MB")
    before: list[object] = []
    yield from read(path, "before", before)
    with SqliteLedger(path) as ledger:
        yield from roll_up(ledger)
    yield Figure("retention.size_after_mb", path.stat().st_size / 1e6, "MB")
    after: list[object] = []
    yield from read(path, "after", after)
    if before != after:
        raise ArithmeticError("the sums differ")


def fill(ledger: SqliteLedger, numbers: range, pods: int) -> None:
    """Write four revisions of these pods, and their usage."""
    lives = [list(revisions(number, pods)) for number in numbers]
    at_us = max(life[-1].end_us or 0 for life in lives)
    for stage in range(4):
        records = {life[stage].uid: life[stage] for life in lives}
        ledger.write(Changes(accounting_start_us=START_US, evaluated_us=at_us, at_us=at_us + stage, revisions=records))
    hours = {(each.assignment.key, each.hour.start_us): each for life in lives for each in usage(life[-1])}
    ledger.write(Changes(accounting_start_us=START_US, evaluated_us=at_us, at_us=at_us + 4, assignment_usage=hours))


def revisions(number: int, pods: int) -> Iterator[PodRecord]:
    """Bound, running, deleted and ended."""
    chance = random.Random(number)
    uid = str(uuid.UUID(int=chance.getrandbits(128), version=4))
    job = f"train-{number // 8:07d}"
    start_us = START_US + number * DAYS * US_PER_DAY // pods
    run_us = start_us + 20 * US_PER_SECOND
    stop_us = run_us + int(min(chance.lognormvariate(1.1, 1), 72) * US_PER_HOUR)
    end_us = stop_us + 5 * US_PER_SECOND
    common = {"tenant": f"team-{number // 8 % 50}", "queue": "", "price": PRICE}
    starting, running, ending = (
        replace(SEGMENT, state=state, **common) for state in (State.STARTING, State.RUNNING, State.TERMINATING)
    )
    started = replace(starting, start_us=start_us, end_us=run_us)
    ran = replace(running, start_us=run_us, end_us=stop_us)
    stages: list[tuple[Segment, ...]] = [
        (replace(starting, start_us=start_us, end_us=None),),
        (started, replace(running, start_us=run_us, end_us=None)),
        (started, ran, replace(ending, start_us=stop_us, end_us=None)),
        (started, ran, replace(ending, start_us=stop_us, end_us=end_us)),
    ]
    node = number // 8 % 500
    names = {
        "job": job,
        "name": f"{job}-{number % 8}-{uid[:5]}",
        "namespace": f"team-{number // 8 % 50}",
        "owner": None,
    }
    for revision, segments in enumerate(stages, 1):
        last_us = end_us if segments[-1].end_us else None
        more = {"node": f"gpu-node-{node:04d}", "node_uid": f"uid-of-node-{node:04d}", "end_us": last_us, "gap": None}
        yield pod(uid, *segments, revision=start_us + revision, created_us=start_us, **names, **more)


def usage(record: PodRecord) -> Iterator[AssignmentHour]:
    """An hour each, from the start to the end."""
    start_us, end_us = record.segments[0].start_us, record.end_us or 0
    assignment = replace(
        ASSIGNMENT,
        key=ASSIGNMENT.key._replace(device=f"GPU-{record.uid}", pod=record.name, since_us=start_us),
        resource="nvidia.com/gpu",
        pod_uid=record.uid,
        ahead_us=0,
    )
    for hour_us in range(start_us // US_PER_HOUR * US_PER_HOUR, end_us, US_PER_HOUR):
        from_us, to_us = max(start_us, hour_us), min(end_us, hour_us + US_PER_HOUR)
        measured = (to_us - from_us) * GPU
        hour = replace(HOUR, start_us=hour_us, from_us=from_us, to_us=to_us, measured=measured, used=measured // 3)
        yield AssignmentHour(assignment=assignment, hour=hour, open=False)


def read(path: Path, when: str, found: list[object]) -> Iterator[Figure]:
    """Read a year's report by some dimensions; adds the sums to `found`."""
    window = Window(START_US, START_US + (DAYS + 10) * US_PER_DAY)
    with open_reader(str(path)) as reader:
        for by in BY:
            started = time.perf_counter()
            times, jobs = reader.allocated_with_jobs(window, by, jobs_by=by[:1])
            took = time.perf_counter() - started
            found += [times, sorted((each.labels, len(each.jobs)) for each in jobs)]
            yield Figure(f"retention.report_by_{by[-1]}_{when}_s", took, "s")
        started = time.perf_counter()
        found.append(reader.measured(window, ("tenant",)))
        yield Figure(f"retention.measured_{when}_s", time.perf_counter() - started, "s")
        started = time.perf_counter()
        found.append(sum(len(each.steps) > 0 for each in reader.allocated_steps(window)))
        yield Figure(f"retention.steps_{when}_s", time.perf_counter() - started, "s")


def roll_up(ledger: SqliteLedger) -> Iterator[Figure]:
    """Roll up all but the last days; a small write after each step, as by a live aggregator."""
    at_us = START_US + (DAYS + 20) * US_PER_DAY
    steps, writes, found = list[float](), list[float](), list[int]()
    rolling = ledger.roll_up(START_US + (DAYS - KEPT_DAYS) * US_PER_DAY)
    started, cpu_before = time.perf_counter(), time.process_time()
    for pods in iter_timed(rolling, steps):
        found.append(pods)
        began = time.perf_counter()
        ledger.write(Changes(accounting_start_us=START_US, evaluated_us=at_us, at_us=at_us))
        writes.append(time.perf_counter() - began)
    yield Figure("retention.rolled_up", found[-1], "pods")
    yield Figure("retention.steps", len(steps), "steps")
    yield Figure("retention.total_s", time.perf_counter() - started, "s")
    yield Figure("retention.cpu_s", time.process_time() - cpu_before, "s")
    yield Figure("retention.steps_s", sum(steps), "s")
    for name, took in (("step", steps), ("write", writes)):
        cuts = quantiles(took, n=100)
        yield Figure(f"retention.{name}_p50_ms", 1000 * cuts[49], "ms")
        yield Figure(f"retention.{name}_p99_ms", 1000 * cuts[98], "ms")
        yield Figure(f"retention.{name}_max_ms", 1000 * max(took), "ms")


def iter_timed(steps: Iterator[int], took: list[float]) -> Iterator[int]:
    """The steps; adds the seconds of each to `took`."""
    while True:
        started = time.perf_counter()
        found = next(steps, None)
        took.append(time.perf_counter() - started)
        if found is None:
            return
        yield found


if __name__ == "__main__":
    sys.exit(main())
