"""Who is preempted, whatever else becomes of the pod; see test_preemptions.py for by whom."""

from dataclasses import replace

import pytest

from gputally.accounting.totals.total import Total
from gputally.model.disruptions import Victim
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Upserted
from tests.core.manifests import NodeForm, as_pod, preempted_event, us
from tests.core.replay import Replay
from tests.unit.accounting.test_preemptions import DELETED, MARKED, PREEMPTOR, RUNNING, cluster, counted


@pytest.mark.parametrize("vanishes", [True, False])
def test_a_victim_that_finished_by_itself_before_it_was_deleted_is_counted(*, vanishes: bool) -> None:
    """Its end is known from its containers, which says nothing to whether it was deleted."""
    finished = replace(MARKED, phase="Succeeded", finished=51, version=3)
    replay = cluster(PREEMPTOR)
    replay.see(finished, at=51)
    if vanishes:
        replay.relist(Kind.PODS, PREEMPTOR, at=60, since=52)
    else:
        replay.lose(finished, at=60)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=61)

    assert counted(replay, 62) == {("low", "high"): 1}


def test_a_victim_that_the_garbage_collector_takes_over_is_counted_also_where_both_are_told_at_once() -> None:
    """It writes its own reason into the mark, which is the newest form's then."""
    replay = cluster(PREEMPTOR)
    for form in (DELETED, replace(DELETED, version=4, mark="DeletionByPodGC", marked=60, phase="Failed")):
        replay.fleet.observe(Upserted(kind=Kind.PODS, object=as_pod(form), at_us=us(61), since_us=us(61)))
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=62)

    assert counted(replay, 63) == {("low", "high"): 1}


@pytest.mark.parametrize("restarts", [True, False])
def test_a_victim_that_its_kubelet_then_rejects_is_a_preemption_and_no_disruption(*, restarts: bool) -> None:
    """It never had the GPUs for which it was chosen."""
    bound = replace(DELETED, started=None)
    replay = Replay()
    replay.see(NodeForm(), at=1)
    replay.see(PREEMPTOR, bound, at=51)
    replay.see_event(preempted_event(bound, by=PREEMPTOR), at=51)
    assert counted(replay, 52) == {("low", "high"): 1}
    assert replay.true(Total.DISRUPTIONS, 52) == {("low", "ml", "preemption"): 1}
    replay.flush()
    if restarts:
        replay.restart()

    rejected = replace(bound, version=4, phase="Failed", reason="OutOfnvidia.com/gpu")
    replay.see(rejected, at=53)

    assert counted(replay, 54) == {("low", "high"): 1}
    assert replay.true(Total.DISRUPTIONS, 54) == {}
    replay.lose(rejected, at=55)
    replay.flush()
    [found] = replay.memory.history["victims"].values()
    assert isinstance(found, Victim)
    assert (found.is_disruption, found.counted, found.job_preemption) == (False, None, "")
    assert found.by
    assert found.by.counted == ("low", "high")
    assert found.released_us == us(53)
