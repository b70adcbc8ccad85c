"""Work that is lost to other disruptions than preemptions, by cause."""

from dataclasses import replace

import pytest

from gputally.accounting.jobs.checkpoints import LAST_CHECKPOINT
from gputally.accounting.totals.total import Total
from gputally.model.disruptions import Cause
from tests.core.manifests import Json, instant
from tests.core.replay import Replay
from tests.unit.accounting.test_lost_work import (
    BOOK,
    END,
    ENDED,
    HOUR,
    LOW,
    NODE,
    REQUESTED,
    RUNNING,
    START,
    by_cause,
    cluster,
    counted,
    loss,
    preempted,
)

RECLAIM: Json = {
    "type": "PreemptionScheduled",
    "status": "True",
    "reason": "SpotEvictionIncoming",
    "lastTransitionTime": instant(REQUESTED - 5),
}


@pytest.mark.parametrize(
    ("mark", "cause"),
    [
        ("DeletionByTaintManager", Cause.TAINT),
        ("DeletionByDeviceTaintManager", Cause.DEVICE_TAINT),
        ("EvictionByEvictionAPI", Cause.EVICTION),
        ("DeletionByPodGC", Cause.NODE_LOST),
        ("MyOwnScheduler", Cause.OTHER),
    ],
)
@pytest.mark.parametrize("exit_code", [0, 143])
def test_work_that_others_than_preemptions_destroy_is_counted_apart(mark: str, cause: Cause, exit_code: int) -> None:
    replay = cluster()
    preempted(replay, mark=mark, exit_code=exit_code, annotations={LAST_CHECKPOINT: instant(END - 50)})

    assert counted(replay) == {}
    assert by_cause(replay) == {cause.value: 4 * 50}
    assert replay.money(END + 40, Total.DISRUPTION_LOST_COST) == {(*LOW, cause.value, "EUR"): 4 * 50}
    assert replay.true(Total.LOST_AT_INTERVAL, END + 40) == {}
    assert loss(replay).pods == ()


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("Preempting", Cause.KUBELET_ADMISSION),
        ("Evicted", Cause.NODE_PRESSURE),
        ("Terminated", Cause.NODE_SHUTDOWN),
    ],
)
def test_pods_that_a_kubelet_stops_lose_their_work_though_nobody_deletes_them(reason: str, cause: Cause) -> None:
    """A critical pod that a kubelet makes room for preempts them as the scheduler would."""
    replay = cluster()
    replay.see(RUNNING, at=START)
    mark = {"mark": "TerminationByKubelet", "marked": REQUESTED, "reason": reason}
    stopped = replace(ENDED, deleted=None, **mark)  # type: ignore[arg-type]  # any field
    replay.see(stopped, at=END)
    is_preemption = cause is Cause.KUBELET_ADMISSION

    assert by_cause(replay) == {cause.value: 4 * (6 * HOUR + 30)}
    assert counted(replay, END + 40) == ({(*LOW, "start"): 4 * (6 * HOUR + 30)} if is_preemption else {})
    assert [each.uid for each in loss(replay).pods] == (["uid-a"] if is_preemption else [])

    replay.lose(replace(stopped, deleted=END + 50, grace=0, version=9), at=END + 50)  # whoever cleans up
    replay.restart()
    assert by_cause(replay, END + 60) == {cause.value: 4 * (6 * HOUR + 30)}


def test_a_cause_that_a_later_signal_corrects_corrects_whose_loss_it_is() -> None:
    """The Event of the reclaim arrives when the pod has been drained and is gone."""
    spot = replace(NODE, labels={**NODE.labels, "karpenter.sh/capacity-type": "spot"})
    replay = Replay(book=BOOK)
    replay.see(spot, at=1)
    preempted(replay, mark="EvictionByEvictionAPI")
    assert by_cause(replay) == {"eviction": 4 * (6 * HOUR + 30)}

    replay.see(replace(spot, version=2, conditions=(RECLAIM,)), at=END + 30)

    assert by_cause(replay, END + 60) == {"spot_reclaim": 4 * (6 * HOUR + 30)}
    assert replay.money(END + 60, Total.DISRUPTION_LOST_COST) == {
        (*LOW, "spot_reclaim", "EUR"): 4 * (6 * HOUR + 30),
    }
