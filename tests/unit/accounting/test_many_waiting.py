"""Many pods that wait at once."""

from dataclasses import replace

from gputally.accounting.waiting.verdicts import MOST_CLASSES
from gputally.model.placement.verdict import Reason
from tests.core.manifests import us
from tests.unit.accounting.test_waiting import WAITS, new_replay


def test_pods_that_are_all_different_are_judged_in_several_steps() -> None:
    replay = new_replay()
    count = MOST_CLASSES + 50
    replay.see(*(replace(WAITS, name=f"b{number}", priority=-number) for number in range(count)), at=21)
    waiting = replay.fleet.waiting

    steps = 0
    while waiting.is_behind:
        waiting.judge(at_us=us(22))
        steps += 1

    assert steps == 2
    assert {each.verdict.reason for each in waiting.pods()} == {Reason.CAPACITY}
    assert len(waiting.pods()) == count
