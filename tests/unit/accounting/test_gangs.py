"""What the members of a gang share, whatever they are labelled with."""

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest

from gputally.accounting.waiting.gangs import MOST_KINDS, Gangs, gang_of
from gputally.accounting.waiting.scheduling_status import SchedulingStatus
from gputally.frameworks.all import POD_GROUPS_BY_KIND
from gputally.frameworks.pod_group_kind import Declared
from gputally.model.kube.kinds import Kind
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.needs import GangState
from gputally.model.verdicts import Reason
from tests.core.gang_pods import WATCHED, group
from tests.core.manifests import PodForm, us
from tests.core.replay import Replay
from tests.unit.accounting.test_waiting import HOLDER, NODE, WAITS, new_replay, reasons
from tests.unit.placement.cluster import needs

SIZE = "pod-group.scheduling.sigs.k8s.io/min-available"
TRAIN, OTHER = "scheduling.x-k8s.io/ml/train", "scheduling.x-k8s.io/ml/other"


def gangs_of(count: int, declared: Mapping[str, Declared] | None = None, *, least: int = 3) -> Gangs:
    gangs = Gangs(declared or {})
    for number in range(count):
        gangs.put(f"uid-{number}", TRAIN, is_bound=False, least=least)
    gangs.changed.clear()
    return gangs


def statuses(count: int, *, kinds: int = 1) -> Mapping[str, SchedulingStatus]:
    return {f"uid-{number}": SchedulingStatus(needs=needs(priority=number % kinds)) for number in range(count)}


def state(gangs: Gangs, known: Mapping[str, SchedulingStatus], *, is_silent: bool = False) -> GangState:
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
    gangs, known = gangs_of(3), statuses(3)
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
    found = state(gangs_of(100), statuses(100, kinds=kinds))

    assert (len(found.waiting), found.is_mixed, found.members) == (told_apart, is_mixed, 100)


def test_a_relabelled_pod_leaves_its_gang() -> None:
    gangs = gangs_of(2)
    gangs.put("uid-1", TRAIN, is_bound=True, least=3)
    gangs.changed.clear()

    gangs.put("uid-1", OTHER, is_bound=True, least=2)

    assert gangs.changed == {TRAIN, OTHER}
    assert state(gangs, statuses(2)) == GangState(
        name="PodGroup train", least=3, members=1, waiting=((needs(priority=0), 1),)
    )
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


def test_what_a_group_declares_precedes_what_its_pods_say() -> None:
    declared = {TRAIN: Declared(5, 0)}
    gangs, known = gangs_of(4, declared), statuses(4)
    assert state(gangs, known).least == 5

    declared[TRAIN] = Declared(2, 0)
    gangs.redeclared({TRAIN, OTHER})

    assert (state(gangs, known).least, gangs.changed) == (2, {TRAIN})


def test_members_without_gpus_exist_unless_the_scheduler_is_silent() -> None:
    gangs, known = gangs_of(8, {TRAIN: Declared(9, 0)}, least=0), statuses(8)

    assert state(gangs, known).least == 8
    assert state(gangs, known, is_silent=True).least == 9


def test_an_elastic_gang_needs_no_more_than_its_minimum() -> None:
    gangs = gangs_of(8, {TRAIN: Declared(4, 0)}, least=0)
    for number in range(4):
        gangs.put(f"uid-{number}", TRAIN, is_bound=True, least=0)

    found = state(gangs, statuses(8))

    assert (found.least, found.bound, found.members) == (4, 4, 8)


@pytest.mark.parametrize("kind", POD_GROUPS_BY_KIND)
def test_a_declared_minimum_is_the_verdict_of_its_pods_as_soon_as_it_is_known(kind: Kind) -> None:
    replay = Replay(opened=0, rules=WATCHED)
    replay.relist(Kind.NODES, NODE, at=1, since=None)
    replay.relist(Kind.PODS, at=2, since=None)
    named = {
        Kind.VOLCANO_GROUPS: replace(WAITS, annotations={"scheduling.k8s.io/group-name": "c"}),
        Kind.COSCHEDULING_GROUPS: replace(WAITS, labels={"scheduling.x-k8s.io/pod-group": "c"}),
        Kind.CORE_GROUPS: replace(WAITS, scheduling_group="c"),
    }[kind]
    pods = [replace(named, name=f"m{number}") for number in range(5)]
    replay.see(*pods, at=21)
    replay.see(*(replace(each, node="n1", scheduled=22, version=2) for each in pods[:3]), at=22)
    replay.scrape(25)
    assert reasons(replay, "m4")[-1][0] is Reason.SCHEDULABLE

    replay.see_object(kind, group(kind, "c", 5), at=26)
    replay.scrape(27)
    [found] = situations(replay, "m4")
    assert reasons(replay, "m4")[-1][0] is Reason.GANG
    assert found
    assert (found.least, found.bound, found.members) == (5, 3, 5)

    replay.see_object(kind, group(kind, "c", 4), at=28)
    replay.scrape(29)
    assert reasons(replay, "m4")[-1][0] is Reason.SCHEDULABLE
