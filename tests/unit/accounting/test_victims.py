"""Who is preempted, whatever else becomes of the pod; see test_preemptions.py for by whom."""

from dataclasses import replace

import pytest

from gputally.model.kube.kinds import Kind
from gputally.model.observation import Upserted
from tests.core.manifests import as_pod, preempted_event, us
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
