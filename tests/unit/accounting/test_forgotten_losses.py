"""Losses are forgotten an hour after their pod: what the ledger and the counters have of them stays."""

from dataclasses import replace

from msgspec import structs

from gputally.model.lost_work import LostWork
from gputally.model.units import COST_UNIT, GPU_SECOND
from tests.core.manifests import NodeForm, us
from tests.core.replay import Replay
from tests.unit.accounting import test_lost_groups as groups
from tests.unit.accounting.test_lost_work import BOOK, END, HOUR, LOW, NODE, cluster, counted, loss, preempted


def test_nothing_is_kept_an_hour_later() -> None:
    replay = cluster()
    preempted(replay)
    replay.scrape(END + 20)
    replay.scrape(END + HOUR + 200)
    replay.scrape(END + HOUR + 400)

    part = replay.fleet.disrupted.lost_work
    assert not any(
        (
            part.losses,
            part._open,
            part._victims,
            part.book._of_group,
            part.book._charged,
            part._known,
            part.checkpoints.known,
        )
    )
    assert replay.memory.documents["lost-work"] == {}
    assert counted(replay, END + 2 * HOUR) == {(*LOW, "start"): 4 * (6 * HOUR + 30)}


def test_a_loss_that_was_forgotten_before_it_was_written_is_still_written() -> None:
    """Changes may wait for long, as while the ledger cannot be written."""
    replay = cluster()
    preempted(replay)
    replay.fleet.advance(us(END + 20))
    expected = loss(replay)
    replay.fleet.advance(us(END + 2 * HOUR))
    assert not replay.fleet.disrupted.lost_work.losses

    assert replay.fleet.drain().lost_work == {"uid-a": expected}
    assert replay.fleet.drain().lost_work == {}


def test_a_written_loss_of_a_pod_that_proves_to_be_no_victim_is_withdrawn_although_it_is_forgotten_at_once() -> None:
    replay = cluster()
    preempted(replay)
    replay.fleet.advance(us(END + 20))
    replay.fleet.drain()
    book = replay.fleet.disrupted.lost_work.book
    book.keep(structs.replace(book.known["uid-a"], is_victim=False, charged_to=""), at_us=us(END + 30))
    book.forget("uid-a")

    assert book.drain_lost() == {"uid-a": None}


def test_labels_that_come_long_before_the_next_write_correct_the_price_of_what_was_lost() -> None:
    replay = Replay(book=BOOK)
    replay.see(NodeForm(name="n1"), at=1)
    preempted(replay)
    replay.fleet.advance(us(END + 20))
    replay.see(replace(NODE, version=2), at=END + 30)
    replay.fleet.advance(us(END + 2 * HOUR))
    replay.flush()

    lost = replay.memory.history["lost_work"]["uid-a"]
    assert isinstance(lost, LostWork)
    assert lost.costs == (("EUR", 4 * (6 * HOUR + 30) * COST_UNIT),)


def test_a_victim_that_is_corrected_hours_later_has_not_lost_the_work_of_its_group_again() -> None:
    """Its pod is kept for its logs; those of the others are long gone."""
    victim, *others = groups.gang(groups.LWS)
    replay = groups.cluster([victim, *others])
    unknown = replace(groups.ended(groups.marked(victim)), lost=True, finished=None)  # not found by its kubelet
    replay.see(groups.marked(victim), at=groups.REQUESTED)
    groups.stop(replay, *others)
    replay.see(unknown, at=groups.VICTIM_END + 20)
    assert groups.lost(replay, groups.GROUP_END + 30) == groups.RAN_VICTIM + 20 + 7 * groups.RAN_MEMBER

    replay.fleet.advance(us(3 * groups.PATIENCE))
    replay.see(replace(groups.ended(groups.marked(victim)), version=9), at=3 * groups.PATIENCE + 1)
    replay.scrape(3 * groups.PATIENCE + 10)

    assert loss(replay, "uid-w0").gpu_time == (groups.RAN_VICTIM + 7 * groups.RAN_MEMBER) * GPU_SECOND
    assert loss(replay, "uid-w0").members == 8
