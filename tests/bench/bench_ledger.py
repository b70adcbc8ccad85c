"""What the ledger costs at 20,000 live pods, and its opening later: `python -m tests.bench.bench_ledger`."""

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from gputally.accounting.changes import Changes
from gputally.accounting.totals import Labels, Series, Total
from gputally.ledger.protocol import Ledger
from gputally.ledger.sqlite import SqliteLedger
from gputally.model.pod import PodRecord
from tests.contract.records import OPENED_S, pod, segment, step, us

PODS = 20_000
SERIES = 8_000
FILE_BYTES = 200_000_000

T = TypeVar("T")


def timed(what: str, call: Callable[[], T]) -> T:
    """Call, and say how long it took."""
    start = time.perf_counter()
    result = call()
    sys.stdout.write(f"{what:58} {1000 * (time.perf_counter() - start):8.1f} ms\n")
    return result


def record(number: int, revision: int) -> PodRecord:
    """A pod of three segments, as most have."""
    parts = segment(1000, 1010), segment(1010, 1000 + 20 * revision), segment(1000 + 20 * revision, None)
    return pod(f"{number:08d}-0000-4000-8000-000000000000", *parts, revision=revision)


def flush(first: int, revision: int) -> Changes:
    """Every one of some pods revised at once, and every counter changed."""
    pods = {each.uid: each for each in (record(number, revision) for number in range(first, first + PODS))}
    series: dict[tuple[Total, Labels], Series] = {
        (Total.ALLOCATED, ("tier", f"tenant-{number}")): Series(us(OPENED_S), a=10**25 + number, b=number)
        for number in range(SERIES)
    }
    return step(*pods.values(), at=OPENED_S + revision, pods=dict(pods), series=series)


def grow(ledger: Ledger, path: Path) -> None:
    """Fill the file with other allocations."""
    first = PODS
    while path.stat().st_size < FILE_BYTES:
        ledger.write(flush(first, 1))
        first += PODS


def main() -> None:
    """One line per figure."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        with SqliteLedger(path) as ledger:
            for revision, what in ((1, "new"), (2, "revised"), (3, "revised again")):
                changes = flush(0, revision)
                timed(f"write {PODS} allocations, {what}, and {SERIES} counters", partial(ledger.write, changes))
            quiet = Changes(opened_us=0, evaluated_us=1, at_us=1, live=(0, 0))
            timed("write a scrape without changes", lambda: ledger.write(quiet))
            timed(f"read the working state of {PODS} pods", lambda: ledger.saved(now_us=0))
            grow(ledger, path)
        ledger = timed(f"open and check a file of {path.stat().st_size / 1e6:.0f} MB", lambda: SqliteLedger(path))
        with ledger:
            found = timed("read all current segments of it", lambda: ledger.overlapping(0, us(10**6)))
        sys.stdout.write(f"  (these were {len(found)})\n")


if __name__ == "__main__":
    main()
