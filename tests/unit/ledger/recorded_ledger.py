"""Records a small ledger of the newest schema: `python -m tests.unit.ledger.recorded_ledger`.

It has rows in all tables that no retention has touched. A recording of a released schema is never made again: the
ledgers of users are as it is.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from msgspec.structs import replace

from gputally.accounting.changes import Changes, Known
from gputally.accounting.jobs.progress import PodProgress
from gputally.accounting.jobs.record import JobRecord
from gputally.accounting.totals.label_limiter import KnownValue
from gputally.accounting.totals.series import Series
from gputally.accounting.totals.total import Total
from gputally.ledger.open import open_reader
from gputally.ledger.records import Window
from gputally.ledger.sqlite import schema
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.allocation import Outcome
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Checkpoint
from gputally.model.waits import PendingSegmentRow
from tests.contract.records import (
    ASSET,
    CLASS_VERSION,
    FACTS,
    LOST_WORK,
    NODE,
    OPENED_S,
    PREEMPTED,
    PRICE,
    QUEUED,
    TERMS,
    WAIT,
    pod,
    segment,
    step,
    us,
)
from tests.contract.test_measured_time import WHOLE, hour
from tests.contract.test_reconciled_sums import UNCREATED
from tests.contract.test_usage import UNALLOCATED_HOUR
from tests.core.closings import close

FOLDER: Final = Path(__file__).parent / "recorded"
DAY: Final = 86_400
_RUNNING: Final[dict[str, Any]] = dict.fromkeys(("end_us", "end_by", "gap", "deletion_us", "preempted_us"))
LIVE: Final = pod(
    "live",
    segment(1100, 1110),
    segment(1110, None),
    terms=tuple(replace(TERMS, from_us=i) for i in range(12)),
    **_RUNNING,
)
"""A pod that goes on, with more terms than its document keeps."""
ENDED: Final = pod("a", segment(1000, 1010), segment(1010, None), segment(1500, 1600, price=None), **_RUNNING)


def steps() -> Iterator[Changes]:
    """What is written, with a pod that ends in a second step."""
    last = replace(ENDED, revision=2, segments=(*ENDED.segments[:1], segment(1010, DAY + 5)), end_us=us(DAY + 5))
    yield step(
        *(ENDED, LIVE, pod("gap", segment(1200, 1300))),
        at=2000,
        live=None,
        pods={"a": ENDED, "live": LIVE},
        nodes={NODE.uid: NODE},
        capacity={(NODE.uid, us(1000)): (NODE.name, FACTS)},
        asset_prices={(ASSET, us(1000)): PRICE},
        series={(Total.ALLOCATED, ("low", "red", "H100", "running")): Series(us(OPENED_S), a=10**25, b=7)},
        known_values={("tenant", "red"): KnownValue(us(1900))},
        resumes={Kind.PODS: Checkpoint(version="17", at_us=us(1990), rules="digest")},
        priority_classes={("low", 7): CLASS_VERSION},
        progress={("ml", "Job", "train", "a"): PodProgress(uid="a", micro=3_000_000, unit="epochs", at_us=us(1800))},
        jobs={"job-1": JobRecord(uid="job-1", namespace="ml", name="train", created_us=1, outcome=Outcome.SUCCEEDED)},
        interruptions={(Kind.PODS, us(1300)): us(1400)},
    )
    wait = replace(WAIT, from_us=us(1700), to_us=us(1800))
    disrupted = {"decided_us": us(1500)}
    yield step(
        last,
        at=2 * DAY,
        live=None,
        known={"a": Known(segments=1, terms=1)},
        pods={"a": None},
        departed={"a": last},
        victims={"a": replace(PREEMPTED, **disrupted), "b": replace(QUEUED, victim_uid="b", **disrupted)},
        lost_work={"a": replace(LOST_WORK, checkpoint_us=us(1400))},
        waits={("w", wait.from_us): PendingSegmentRow(uid="w", namespace="ml", name="pod-w", wait=wait)},
        uncreated_waits={("ml", "job-1", us(1200)): UNCREATED},
        assignment_usage={(WHOLE.key, us(1100)): hour(1100, 1200, measured=60, used=50, energy=9)},
        unallocated_usage={UNALLOCATED_HOUR.key: UNALLOCATED_HOUR},
    )


def record(path: Path) -> None:
    """Write the ledger, with a closed period."""
    with SqliteLedger(path) as ledger:
        ledger.bind("cluster-1")
        for each in steps():
            ledger.write(each)
        with open_reader(str(path)) as reader:
            close(ledger, reader, Window(us(1000), us(DAY)), name="1970-01-01")


def restored(recording: Path, path: Path) -> None:
    """Make the ledger file of a recording."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(recording.read_text())
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {int(recording.stem)}")


def main() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        record(path)
        with closing(sqlite3.connect(path)) as connection:
            text = "\n".join(connection.iterdump())
    (FOLDER / f"{schema.newest_schema():04}.sql").write_text(f"{text}\n")


if __name__ == "__main__":
    main()
