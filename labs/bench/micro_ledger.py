"""Measures ledger writes and reads at 20,000 live pods, and reopening."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from gputally.accounting.changes import Changes
from gputally.accounting.totals.series import Labels, Series
from gputally.accounting.totals.total import RECONCILED, Total
from gputally.ledger.open import open_reader
from gputally.ledger.protocol import Ledger
from gputally.ledger.records import Window
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.pod_record import PodRecord
from labs.bench.figure import Figure
from labs.bench.timing import timed
from tests.contract.records import OPENED_S, pod, segment, step, us

PODS = 20_000
SERIES = 8_000
FILE_BYTES = 200_000_000
WRITES = (("new", 1), ("revised", 2))


def measure() -> Iterator[Figure]:
    """Write many allocations at once, write nothing, and read."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        with SqliteLedger(path) as ledger:
            for what, revision in WRITES:
                changes = flush(0, revision)
                yield once(f"write_{what}_20000", partial(ledger.write, changes))
            quiet = Changes(accounting_start_us=0, evaluated_us=1, at_us=1, live=dict.fromkeys(RECONCILED, (0, 0)))
            yield once("write_nothing", lambda: ledger.write(quiet))
            yield once("read_state_20000", lambda: ledger.saved(now_us=0))
            pods = grow(ledger, path)
        yield once("open_200mb", lambda: SqliteLedger(path).__enter__().__exit__(None, None, None))
        with open_reader(str(path)) as reader:
            read = once("read_all_200mb", lambda: list(reader.segments(Window(0, us(10**6)))))
            yield read
            yield Figure("micro.ledger_read_us_per_pod", 1000 * read.value / pods, "µs")


def once(what: str, call: Callable[[], object]) -> Figure:
    """Measure one call, because calls that change the file cannot be repeated."""
    return Figure(f"micro.ledger_{what}_ms", 1000 * timed(call), "ms")


def record(number: int, revision: int) -> PodRecord:
    """A pod with three segments, as is typical."""
    parts = segment(1000, 1010), segment(1010, 1000 + 20 * revision), segment(1000 + 20 * revision, None)
    return pod(f"{number:08d}-0000-4000-8000-000000000000", *parts, revision=revision)


def flush(first: int, revision: int) -> Changes:
    """A flush that revises all pods from `first` on and changes every counter."""
    pods = {each.uid: each for each in (record(number, revision) for number in range(first, first + PODS))}
    series: dict[tuple[Total, Labels], Series] = {
        (Total.ALLOCATED, ("tier", f"tenant-{number}")): Series(us(OPENED_S), a=10**25 + number, b=number)
        for number in range(SERIES)
    }
    return step(*pods.values(), at=OPENED_S + revision, pods=dict(pods), series=series)


def grow(ledger: Ledger, path: Path) -> int:
    """Fill the file with further allocations; return the number of pods in it."""
    first = PODS
    while path.stat().st_size < FILE_BYTES:
        ledger.write(flush(first, 1))
        first += PODS
    return first
