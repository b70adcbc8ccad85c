"""Whoever may patch a pod may move it to another group, also after its end."""

from dataclasses import replace

from gputally.model.units import GPU_SECOND
from tests.unit.accounting.test_lost_groups import (
    REQUESTED,
    START,
    VICTIM_END,
    VOLCANO,
    cluster,
    ended,
    gang,
    marked,
)
from tests.unit.accounting.test_lost_work import loss


def test_an_ended_pod_that_its_author_relabels_leaves_its_group() -> None:
    other = {"volcano.sh/job-name": "other"}
    victim, member = gang(VOLCANO, 2)
    replay = cluster([victim, member])
    replay.see(marked(victim), at=REQUESTED)
    replay.see(ended(marked(victim)), at=VICTIM_END)  # a finalizer keeps it
    replay.scrape(VICTIM_END + 10)
    relabelled = replace(ended(marked(victim)), labels=other, version=4)
    replay.see(relabelled, at=VICTIM_END + 20)
    replay.lose(relabelled, at=VICTIM_END + 40)
    for later in range(VICTIM_END + 50, VICTIM_END + 9000, 300):
        replay.scrape(later)

    last = VICTIM_END + 9100
    replay.see(marked(member, last), at=last)
    replay.lose(ended(marked(member, last), last + 5), at=last + 6)
    replay.scrape(last + 20)

    assert loss(replay, "uid-w1").gpu_time == (last + 5 - START) * GPU_SECOND
