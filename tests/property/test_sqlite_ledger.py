"""Over random clusters, crashes and repeated writes, the ledger's file alone says what the naive reference says."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.changes import Changes, Saved
from gputally.ledger.sqlite import SqliteLedger
from tests.core.manifests import us
from tests.core.memory import Memory
from tests.property.examples import examples
from tests.property.strategies import HORIZON, OPENED, Cluster, clusters
from tests.property.test_accounting import NO_PRICES, assert_laws, new_replay, next_news, tell, truth_of

STEPS = ("", "", "flush", "flush", "crash")


class Filed(Memory):
    """Keeps everything in a file too, each step twice, and starts from what the file says."""

    def __init__(self, path: Path) -> None:
        super().__init__(opened_us=us(OPENED))
        self.path = path

    def write(self, changes: Changes) -> None:
        super().write(changes)
        with SqliteLedger(self.path) as ledger:
            first, again = ledger.write(changes), ledger.write(changes)
        assert first == again == (0, 0)

    def saved(self) -> Saved:
        with SqliteLedger(self.path) as ledger:
            return ledger.saved(now_us=us(OPENED))


@given(clusters(outages=True), st.data())
@examples(25)
def test_the_file_holds_the_truth_whatever_crashed(cluster: Cluster, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        replay, i, kept, crashes = new_replay(NO_PRICES), 0, 0, 3
        replay.memory = Filed(path)
        while i < len(cluster.log):
            tell(replay, cluster.log[i])
            i += 1
            step = data.draw(st.sampled_from(STEPS))
            if step == "flush":
                replay.flush()
                kept = i
            if step == "crash" and crashes:
                replay.restart()
                i, crashes = next_news(cluster.log, kept), crashes - 1  # what was not kept is told again
        replay.fleet.advance(us(HORIZON))
        assert_laws(replay)

        assert in_file(path) == +truth_of(cluster, NO_PRICES).allocated


def in_file(path: Path) -> Counter[tuple[str, ...]]:
    """GPU-time of [OPENED, HORIZON) by labels, in seconds of a millionth of a GPU."""
    found = Counter[tuple[str, ...]]()
    with SqliteLedger(path) as ledger:
        for entry in ledger.overlapping(us(OPENED), us(HORIZON)):
            segment = entry.segment
            start_us = max(segment.start_us, us(OPENED))
            end_us = us(HORIZON) if segment.end_us is None else min(segment.end_us, us(HORIZON))
            found[segment.labels] += segment.quantity * (end_us - start_us) // 1_000_000
    return found
