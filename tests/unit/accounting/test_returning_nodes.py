"""Pods whose node is gone for a moment: they had not ended, so nothing disrupted them and no work is lost."""

from dataclasses import replace

import pytest

from gputally.accounting.totals.total import Total
from tests.core.manifests import NodeForm, PodForm
from tests.core.replay import Replay

GONE, BACK, LATER = 60, 70, 100
NODE = NodeForm(name="n1", uid="node-1", gpus=4, machine="4c4c4544")
POD = PodForm(name="a", tier="low", created=5, node="n1", scheduled=6, started=10, gpus=2)
MARKED = replace(POD, marked=50, deleted=50, version=2)


def told(*, returns: bool, pod: PodForm) -> Replay:
    """The node is deleted as a pod runs on it, and registers again, which no event of the pod follows."""
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(POD, at=10)
    replay.see(pod, at=50)
    replay.lose(NODE, at=GONE)
    replay.scrape(GONE + 5)
    if returns:
        replay.see(replace(NODE, uid="node-2", created=BACK), at=BACK)
    replay.scrape(LATER)
    return replay


@pytest.mark.parametrize(("returns", "lost"), [(True, {}), (False, {("low", "ml", "node_lost"): 2 * (GONE - 10)})])
def test_a_pod_whose_machine_registers_again_was_not_disrupted(
    returns: bool,  # noqa: FBT001 - a parameter of the test
    lost: dict[tuple[str, ...], int],
) -> None:
    replay = told(returns=returns, pod=replace(POD, version=2))

    causes = {labels[2]: count for labels, count in replay.true(Total.DISRUPTIONS, LATER).items() if count}
    assert causes == ({} if returns else {"node_lost": 1})
    assert {key: value for key, value in replay.gpu_seconds(LATER, Total.DISRUPTION_LOST).items() if value} == lost


def test_a_victim_that_still_runs_on_a_machine_that_registers_again_has_lost_nothing_yet() -> None:
    replay = told(returns=True, pod=MARKED)
    assert not any(replay.gpu_seconds(LATER, Total.LOST).values())

    replay.lose(replace(MARKED, phase="Failed", finished=110, exit_code=143, version=3), at=111)
    replay.scrape(LATER + 20)
    replay.scrape(LATER + 30)
    assert replay.gpu_seconds(LATER + 30, Total.LOST) == {("low", "ml", "start"): 2 * (110 - 10)}
