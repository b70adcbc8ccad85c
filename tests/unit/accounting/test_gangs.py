"""What the members of a gang share, whatever they are labelled with."""

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest

from gputally.accounting.waiting.gangs import MOST_KINDS, Gangs, gang_of
from gputally.accounting.waiting.plea import Plea
from gputally.model.objects.placeable_pod import PlaceablePod
from gputally.model.placement.situation import GangState
from gputally.model.placement.verdict import Reason
from tests.core.manifests import PodForm, us
from tests.core.replay import Replay
from tests.unit.accounting.test_waiting import HOLDER, WAITS, new_replay, reasons
from tests.unit.placement.cluster import needs

SIZE = "pod-group.scheduling.sigs.k8s.io/min-available"
TRAIN, OTHER = ("ml", "PodGroup train"), ("ml", "PodGroup other")


def gangs_of(count: int) -> Gangs:
    gangs = Gangs()
    for number in range(count):
        gangs.put(f"uid-{number}", TRAIN, is_bound=False, least=3)
    gangs.changed.clear()
    return gangs


def pleas(count: int, *, kinds: int = 1) -> Mapping[str, Plea]:
    return {f"uid-{number}": Plea(needs=needs(priority=number % kinds)) for number in range(count)}


def state(gangs: Gangs, known: Mapping[str, Plea], *, is_silent: bool = False) -> GangState:
    found = gangs.state(TRAIN, known, is_silent=is_silent)
    assert found
    return found


def member(name: str, gang: str = "train", *, size: str = "2", version: int = 1, priority: int = 1) -> PodForm:
    labels = {"scheduling.x-k8s.io/pod-group": gang, SIZE: size}
    return replace(WAITS, name=name, labels=labels, version=version, priority=priority)


def free_replay() -> Replay:
    replay = new_replay()
    replay.see(replace(HOLDER, phase="Succeeded", finished=15, version=3), at=15)
    return replay


def situations(replay: Replay, *names: str) -> list[GangState | None]:
    waiting = replay.fleet.waiting
    return [waiting.verdicts.of[f"uid-{name}"].situation.gang for name in names]


def test_all_members_of_a_gang_share_one_state() -> None:
    replay = free_replay()
    names = [f"b{number}" for number in range(50)]
    replay.see(*(member(name, priority=number % 3) for number, name in enumerate(names)), at=21)
    replay.fleet.waiting.judge(at_us=us(22))

    found = situations(replay, *names)

    assert len({id(each) for each in found}) == 1
    assert found[0]
    assert sorted(count for _, count in found[0].waiting) == [16, 17, 17]


def test_the_state_of_a_gang_is_the_same_object_until_a_member_changes() -> None:
    gangs, known = gangs_of(3), pleas(3)
    before = state(gangs, known)

    gangs.put("uid-0", TRAIN, is_bound=False, least=3)
    assert state(gangs, known) is state(gangs, known, is_silent=True) is before
    assert not gangs.changed

    gangs.put("uid-0", TRAIN, is_bound=True, least=3)
    assert (state(gangs, known).bound, gangs.changed) == (1, {TRAIN})
    gangs.put("uid-1", TRAIN, is_bound=False, least=2)
    assert state(gangs, known).least == 2
    gangs.drop("uid-2")
    assert state(gangs, known).members == 2


@pytest.mark.parametrize(("kinds", "told_apart", "is_mixed"), [(MOST_KINDS, MOST_KINDS, False), (100, 0, True)])
def test_a_state_tells_a_bounded_number_of_needs_apart(kinds: int, told_apart: int, *, is_mixed: bool) -> None:
    found = state(gangs_of(100), pleas(100, kinds=kinds))

    assert (len(found.waiting), found.is_mixed, found.members) == (told_apart, is_mixed, 100)


def test_a_relabelled_pod_leaves_its_gang() -> None:
    gangs = gangs_of(2)
    gangs.put("uid-1", TRAIN, is_bound=True, least=3)
    gangs.changed.clear()

    gangs.put("uid-1", OTHER, is_bound=True, least=2)

    assert gangs.changed == {TRAIN, OTHER}
    assert state(gangs, pleas(2)) == GangState(name=TRAIN[1], least=3, members=1, waiting=((needs(priority=0), 1),))
    assert list(gangs.pending(TRAIN)) == ["uid-0"]


def test_a_pod_that_is_relabelled_again_and_again_leaves_nothing_behind() -> None:
    replay = free_replay()
    for turn in range(100):
        replay.see(member("b", f"g{turn}", version=3 + turn), at=21 + turn / 100)
    gangs = replay.fleet.waiting.situations.gangs

    assert len(gangs._pods) == 1
    replay.lose(member("b", "g99", version=200), at=40)
    assert not gangs._pods


def test_members_that_stay_are_judged_again_when_one_is_relabelled() -> None:
    replay = free_replay()
    replay.see(member("b"), member("c"), at=21)
    replay.scrape(22)
    replay.see(member("c", "other", version=4), at=23)
    replay.scrape(24)

    assert [reason for reason, _, _ in reasons(replay)] == [Reason.SCHEDULABLE, Reason.GANG]


def test_members_learn_what_a_new_member_needs_and_that_a_bound_one_needs_nothing_more() -> None:
    replay = free_replay()
    replay.see(member("b"), member("c", priority=7), at=21)
    replay.scrape(22)
    [before] = situations(replay, "b")

    replay.see(replace(member("c", priority=7), node="n1", scheduled=23, version=4), at=23)
    replay.scrape(24)

    [after] = situations(replay, "b")
    assert before
    assert after
    assert [count for _, count in before.waiting] == [1, 1]
    assert [(each.priority, count) for each, count in after.waiting] == [(1, 1)]


def test_members_learn_that_another_one_needs_something_else() -> None:
    replay = free_replay()
    replay.see(member("b"), member("c"), at=21)
    replay.scrape(22)

    replay.see(member("c", priority=7, version=4), at=23)
    replay.scrape(24)

    [found] = situations(replay, "b")
    assert found
    assert [(each.priority, count) for each, count in found.waiting] == [(1, 1), (7, 1)]


def test_a_stated_size_is_bounded() -> None:
    def least(text: str) -> int:
        return gang_of(msgspec.convert(member("b", size=text).manifest(), PlaceablePod))[1]

    assert least("99999999") == least("100000") == 100_000
    assert least("9" * 400) == least("-1") == 0
