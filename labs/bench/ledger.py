"""Measures the ledger's size and speed over years: `python -m labs.bench.ledger --help`.

lives PATH PODS     complete pod lifetimes on a live watch, through fleet and ledger: bytes per pod
toggle CHANGES...   repeated changes of one pod's label: rows, bytes and time of each change
fill PATH PODS      a ledger with this many finished allocations, 100,000 every three days
start PATH          time to open such a ledger and restore the state, cold and warm
reports PATH        CPU time of the report of its last day and of its last 30 days, by tenant and by job
"""

import argparse
import os
import random
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.fleet.snapshot import publish
from gputally.ledger.open import open_reader
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Deleted, Observation, Upserted
from gputally.model.rules import Rules
from gputally.model.units import US_PER_DAY, to_datetime
from labs.bench.figure import Figure, line
from tests.core.manifests import NodeForm, PodForm, as_pod, namespace, us
from tests.core.one_pod import A100, BY_LABEL, NODE, RUNNING
from tests.core.replay import Replay

NODES = 500
ALIVE, PACE = 2_000, 10
"""Concurrent pods, and pods created per second."""
COPIED = 100_000
"""Allocations that are written from pod lifetimes; further ones are copies with other UIDs."""
EVERY_DAYS = 3
"""The days between two copies."""
LAST = 100
"""Number of changes over which the cost is averaged."""


def main() -> int:
    """Run one measurement. Always returns 0; a failed measurement raises."""
    parser = argparse.ArgumentParser(prog="python -m labs.bench.ledger", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("lives", "fill"):
        each = commands.add_parser(command)
        each.add_argument("path", type=Path)
        each.add_argument("pods", type=int)
    for command in ("start", "reports"):
        commands.add_parser(command).add_argument("path", type=Path)
    commands.add_parser("toggle").add_argument("changes", type=int, nargs="+")
    plan = parser.parse_args()
    measured: dict[str, Callable[[], Iterator[Figure]]] = {
        "lives": lambda: lives(plan.path, plan.pods),
        "fill": lambda: fill(plan.path, plan.pods),
        "start": lambda: start(plan.path),
        "reports": lambda: reports(plan.path),
        "toggle": lambda: toggle(sorted(plan.changes)),
    }
    for figure in measured[plan.command]():
        sys.stdout.write(f"{line(figure)}\n")
        sys.stdout.flush()
    return 0


def lives(path: Path, pods: int) -> Iterator[Figure]:
    """Each pod is created, bound, runs, is deleted, ends and is removed. The ledger is written every second."""
    replay = Replay()
    for number in range(NODES):
        replay.see(NodeForm(name=f"gpu-node-{number:04d}", labels=A100), at=0)
    for number in range(50):
        replay.see_namespace(namespace(f"team-{number}"), at=0)
    with SqliteLedger(path) as ledger:
        started = time.perf_counter()
        for second in range((pods + ALIVE) // PACE + 60):
            for age, stage in STAGES:
                for number in range((second - age) * PACE, (second - age + 1) * PACE):
                    if 0 <= number < pods:
                        replay.apply(stage(number, second))
            if any(map(any, ledger.write(replay.fleet.drain()).values())):
                raise ArithmeticError("the ledger differs from the counters")
        took = time.perf_counter() - started
    yield Figure("ledger.bytes_per_pod", path.stat().st_size / pods, "B", "<= 1000")
    yield Figure("ledger.lives_per_s", pods / took, "1/s")


def form(number: int, **more: Any) -> PodForm:  # noqa: ANN401 - any field of a form
    """A pod of an eight-pod job, with a random UID as from an API server."""
    uid = uuid.UUID(int=random.Random(number).getrandbits(128), version=4)
    job, created = f"train-{number // 8:07d}", number // PACE
    return PodForm(
        name=f"{job}-{number % 8}-{uid.hex[:5]}",
        uid=str(uid),
        namespace=f"team-{number % 50}",
        tier="normal",
        labels={"batch.kubernetes.io/job-name": job},
        created=created,
        node=f"gpu-node-{number % NODES:04d}",
        scheduled=created + 1,
        **more,
    )


def upserted(number: int, at: int, version: int, **more: Any) -> Upserted:  # noqa: ANN401 - any field of a form
    pod = as_pod(form(number, version=10 * number + version, **more))
    return Upserted(kind=Kind.PODS, object=pod, at_us=us(at), since_us=us(at))


def bound(number: int, at: int) -> Observation:
    return upserted(number, at, 1)


def runs(number: int, at: int) -> Observation:
    return upserted(number, at, 2, started=at)


def deleted(number: int, at: int) -> Observation:
    return upserted(number, at, 3, started=at - DELETED + RUNS, deleted=at)


def ended(number: int, at: int) -> Upserted:
    started = at - DELETED - 20 + RUNS
    return upserted(number, at, 4, started=started, deleted=at - 20, finished=at, phase="Succeeded")


def gone(number: int, at: int) -> Observation:
    last = ended(number, at - 2)
    return Deleted(kind=Kind.PODS, object=last.object, at_us=us(at), since_us=us(at))


RUNS, DELETED = 9, ALIVE // PACE
STAGES = ((1, bound), (RUNS, runs), (DELETED, deleted), (DELETED + 20, ended), (DELETED + 22, gone))
"""Age in seconds, and the watch event at that age."""


def toggle(changes: list[int]) -> Iterator[Figure]:
    """Change one label repeatedly; account and write each change."""
    with TemporaryDirectory() as folder, SqliteLedger(Path(folder) / "ledger.db") as ledger:
        replay, count = Replay(rules=BY_LABEL), 0
        replay.see(NODE, at=1)
        for until in changes:
            took = []
            while count < until:
                count += 1
                started = time.perf_counter()
                label = {"team": "red" if count % 2 else "blue"}
                replay.see(replace(RUNNING, labels=label, version=10 + count), at=20 + count / 100)
                ledger.write(replay.fleet.drain())
                took.append(time.perf_counter() - started)
            yield Figure(f"ledger.toggle_ms@{until}", 1000 * mean(took[-LAST:]), "ms")
            yield Figure(f"ledger.toggle_rows@{until}", rows(ledger.path), "rows")
            yield Figure(f"ledger.toggle_bytes@{until}", ledger.path.stat().st_size, "B")


def rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        found: list[int] = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("pod_revisions", "pod_segments", "histories")
        ]
    return sum(found)


def fill(path: Path, pods: int) -> Iterator[Figure]:
    """Write the first 100,000 pods from lifetimes, and the others as later copies of them."""
    yield from lives(path, min(pods, COPIED))
    started = time.perf_counter()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA cache_size = -2000000")
        for number, first in enumerate(range(COPIED, pods, COPIED), 1):
            days = number * EVERY_DAYS
            moved = {"first": first, "days": days, "us": days * US_PER_DAY}
            for table, key in (("pods", "id"), ("pod_revisions", "pod"), ("pod_segments", "pod"), ("pod_days", "pod")):
                connection.execute(copy_of(connection, table, key), moved)
            connection.execute(MOVE_END, {"us": EVERY_DAYS * US_PER_DAY})
        add_to_balance(connection, max(0, pods - COPIED) // COPIED)
    yield Figure("ledger.copied_s", time.perf_counter() - started, "s")
    with SqliteLedger(path) as ledger:
        started = time.process_time()
        pages = len([*ledger.add_up()])
        yield Figure("ledger.add_up_ms", 1000 * (time.process_time() - started) / max(1, pages), "ms")
    yield Figure("ledger.size_mb", path.stat().st_size / 1e6, "MB")


UID = """lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-' || hex(randomblob(2)) || '-' ||
hex(randomblob(2)) || '-' || hex(randomblob(6)))"""
MOVE_END = """
UPDATE meta SET value = CAST(CAST(value AS INTEGER) + :us AS TEXT) WHERE key IN ('at_us', 'evaluated_us')
"""


def copy_of(connection: sqlite3.Connection, table: str, key: str) -> str:
    """The statement that copies the rows of the first pods, with other numbers and UIDs, some days later."""
    columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    changed = {name: f"{name} + :us" for name in columns if name.endswith("_us") or name == "revision"}
    changed |= {key: f"{key} + :first", "uid": UID, "day": "day + :days"}
    values = ", ".join(changed.get(name, name) for name in columns)
    return f"INSERT INTO {table} SELECT {values} FROM {table} WHERE {key} <= {COPIED}"


def reports(path: Path) -> Iterator[Figure]:
    """Each report runs in a process of its own, whose CPU time counts, start included."""
    with open_reader(str(path)) as reader:
        end_us = reader.state().accounted_us // US_PER_DAY * US_PER_DAY + US_PER_DAY
    for span, days in (("day", 1), ("month", 30)):
        window = "/".join(f"{to_datetime(us):%Y-%m-%d}" for us in (end_us - days * US_PER_DAY, end_us))
        for by in ("tenant", "job"):
            command = (sys.executable, "-m", "gputally", "report", "--ledger", str(path), "--window", window)
            before = os.times()
            subprocess.run([*command, "--by", by, "--time-zone", "UTC"], stdout=subprocess.DEVNULL, check=True)
            after = os.times()
            took = after.children_user + after.children_system - before.children_user - before.children_system
            yield Figure(f"ledger.report_{span}_by_{by}_cpu_s", took, "s")


def add_to_balance(connection: sqlite3.Connection, times: int) -> None:
    """Update the balance for the copied allocations, all of which have ended."""
    [balance] = connection.execute("SELECT value FROM meta WHERE key = 'balance_allocated_a'").fetchone()
    connection.execute(
        "UPDATE meta SET value = ? WHERE key = 'balance_allocated_a'", (str(int(balance) * (1 + times)),)
    )


def start(path: Path) -> Iterator[Figure]:
    """Time to restore the state, and of the first scrape. Cold means that the file is not in the page cache."""
    evict(path)
    for how in ("cold", "warm"):
        started = time.perf_counter()
        with SqliteLedger(path) as ledger:
            saved = ledger.saved(now_us=us(0))
            fleet = Fleet(rules=Rules(), book=None, saved=saved)
            yield Figure(f"ledger.start_{how}_s", time.perf_counter() - started, "s", "<= 0.5")
            started = time.perf_counter()
            publish(fleet, now_us=saved.at_us + 1, ledger={})
            ledger.write(fleet.drain())
            yield Figure(f"ledger.scrape_{how}_ms", 1000 * (time.perf_counter() - started), "ms")


def evict(path: Path) -> None:
    """Drop the file from the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())
