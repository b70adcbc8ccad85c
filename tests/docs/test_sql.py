import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from gputally.accounting.changes import Changes
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.core.manifests import us
from tests.core.memory import Memory
from tests.core.one_pod import BY_LABEL, FINISHED, NODE, RUNNING
from tests.core.replay import Replay
from tests.docs.pages import TEXTS, blocks

HOUR = 3600
(QUERY,) = blocks(TEXTS["docs/accounting.md"], "sql")


class StoredMemory(Memory):
    def __init__(self, ledger: SqliteLedger) -> None:
        super().__init__(accounting_start_us=us(-HOUR))
        self.ledger = ledger

    def write(self, changes: Changes) -> None:
        super().write(changes)
        self.ledger.write(changes)


def test_the_monthly_query_counts_running_pods_and_cuts_to_the_month(tmp_path: Path) -> None:
    path = tmp_path / "gputally.db"
    early = replace(RUNNING, name="early", labels={"team": "red"}, created=-HOUR, scheduled=-HOUR, started=-HOUR)
    ended = replace(FINISHED, name="ended", labels={"team": "blue"}, scheduled=HOUR, started=HOUR, finished=3 * HOUR)
    with SqliteLedger(path) as ledger:
        replay = Replay(rules=BY_LABEL, opened=-HOUR)
        replay.memory = StoredMemory(ledger)
        replay.see(replace(NODE, created=-HOUR), early, at=1)
        replay.see(ended, at=3 * HOUR)
        replay.fleet.advance(us(4 * HOUR))
        replay.flush()

    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(QUERY).fetchall() == [("red", 4.0), ("blue", 2.0)]
