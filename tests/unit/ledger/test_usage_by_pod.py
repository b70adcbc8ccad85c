"""The view of what pods did, by the hour."""

import sqlite3
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.units import GPU, US_PER_HOUR, US_PER_SECOND
from tests.contract.records import us
from tests.contract.test_usage import ASSIGNMENT, ASSIGNMENT_HOUR, reported


def test_containers_devices_and_lives_of_an_agent_add_up_by_pod_and_hour(tmp_path: Path) -> None:
    whole = replace(ASSIGNMENT_HOUR, assignment=replace(ASSIGNMENT, pod_uid="uid-a"))
    other_device = replace(
        whole,
        assignment=replace(
            whole.assignment, key=ASSIGNMENT.key._replace(device="MIG-8", epoch="e2"), until_us=us(1020)
        ),
    )
    later = replace(whole, hour=replace(whole.hour, start_us=US_PER_HOUR))
    with SqliteLedger(tmp_path / "ledger.db") as ledger:
        ledger.write(reported(whole, other_device, later))

    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        rows = connection.execute(
            "SELECT pod_uid, start_us, measured, used, burst, energy, memory FROM usage_by_pod ORDER BY start_us"
        ).fetchall()

    byte_seconds = 80_000_000_000 * US_PER_HOUR / US_PER_SECOND
    assert rows == [
        ("uid-a", 0, 40 * GPU, 20 * GPU, 2 * GPU, 14, 2 * byte_seconds),
        ("uid-a", US_PER_HOUR, 20 * GPU, 10 * GPU, GPU, 7, byte_seconds),
    ]
