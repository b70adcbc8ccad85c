"""The pods that lost work, as the ledger keeps them for reports."""

from msgspec import structs

from gputally.accounting.jobs.checkpoints import LAST_CHECKPOINT
from gputally.model.lost_work import CheckpointSource, LostPod
from tests.core.manifests import instant, us
from tests.unit.accounting.test_lost_work import END, START, cluster, counted, loss, preempted


def test_a_pod_lost_what_it_did_from_its_checkpoint_to_its_end() -> None:
    replay = cluster()
    preempted(replay, annotations={LAST_CHECKPOINT: instant(1000)})
    counted(replay)

    assert loss(replay).pods == (LostPod("uid-a", us(1000), us(END), CheckpointSource.ANNOTATION),)


def test_without_a_checkpoint_it_lost_what_it_did_since_its_start() -> None:
    replay = cluster()
    preempted(replay)
    counted(replay)

    assert loss(replay).pods == (LostPod("uid-a", us(START), us(END), CheckpointSource.START),)


def test_a_loss_is_withdrawn_if_its_pod_proves_to_be_no_victim() -> None:
    replay = cluster()
    preempted(replay)
    counted(replay)
    book = replay.fleet.disrupted.lost_work.book
    book.drain_lost()

    book.keep(structs.replace(book.known["uid-a"], is_victim=False, charged_to=""), at_us=us(END + 30))

    assert book.drain_lost() == {"uid-a": None}
