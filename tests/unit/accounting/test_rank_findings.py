"""Waiting pods that others should not precede, although these are looked at by classes of equal pods."""

from dataclasses import replace

from gputally.model.verdicts import FindingKind
from tests.unit.accounting.test_ends_of_waits import OUTRANKS, findings
from tests.unit.accounting.test_waiting import HOLDER, new_replay


def test_a_pod_that_came_after_the_last_start_of_a_lower_one_is_not_starved_as_an_older_one_like_it_is() -> None:
    replay = new_replay()
    replay.see(OUTRANKS, at=21)
    replay.see(replace(HOLDER, phase="Succeeded", finished=90, version=2), at=91)
    replay.see(replace(HOLDER, name="next", created=90, scheduled=100, started=101), at=101)
    replay.see(replace(OUTRANKS, name="late", created=200), at=201)

    assert findings(replay, 210) == {("lead", "starvation"): 1, ("lead", "outranked"): 2}
    outranked, starved = (FindingKind.OUTRANKED, 8), (FindingKind.STARVATION, 8)
    assert replay.fleet.waiting.findings.by_pod() == {"uid-b": (outranked, starved), "uid-late": (outranked,)}
