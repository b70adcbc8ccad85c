"""Two pods choose the same victim: the scheduler sends an Event for each, in any order; the first sent one counts."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gputally.accounting.totals.total import Total
from tests.core.manifests import Json, NodeForm, PodForm, instant, preempted_event
from tests.core.replay import Replay

VICTIM = PodForm(name="victim", uid="11111111-1111-1111-1111-111111111111", tier="low", node="n1", scheduled=10)
DELETED = replace(VICTIM, marked=50, deleted=50, version=2)
FIRST = PodForm(name="first", uid="22222222-2222-2222-2222-222222222222", tier="high", priority=100, created=49)
SECOND = replace(FIRST, name="second", uid="33333333-3333-3333-3333-333333333333", tier="urgent")


def sent(by: PodForm, at: int) -> Json:
    return preempted_event(VICTIM, by=by) | {"eventTime": instant(at)}


def replay_of(events: Sequence[Json], *, at: int) -> Replay:
    """The first Event comes with the deletion, the other one at that second."""
    replay = Replay()
    replay.see(NodeForm(), at=1)
    replay.see(VICTIM, FIRST, SECOND, at=49)
    replay.see(DELETED, at=52)
    for event, second in zip(events, (52, at), strict=True):
        replay.see_event(event, at=second)
        replay.scrape(second)
    return replay


@pytest.mark.parametrize("order", [1, -1], ids=["as sent", "the other way round"])
def test_the_preemptor_is_the_one_whose_event_was_sent_first(order: int) -> None:
    replay = replay_of([sent(FIRST, 51), sent(SECOND, 52)][::order], at=53)

    assert replay.true(Total.PREEMPTIONS, 53) == {("low", "high"): 1}


def test_an_event_that_comes_a_minute_later_changes_no_preemptor() -> None:
    replay = replay_of([sent(SECOND, 52), sent(FIRST, 51)], at=113)

    assert replay.true(Total.PREEMPTIONS, 113) == {("low", "urgent"): 1}
