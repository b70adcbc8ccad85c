"""What the verdict of a campaign lets pass as unknowable, and what not."""

from typing import TYPE_CHECKING

from labs.campaign.verdict import SECOND_US, Interval, exactly
from tests.cluster.manifests import GPU, Json

if TYPE_CHECKING:
    from tests.behaviour.product import Rows
    from tests.behaviour.recorder import Form

BOUND = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "1970-01-01T00:01:29Z"}]
TAKEN_BACK = [{"type": "PodScheduled", "status": "False", "lastTransitionTime": "1970-01-01T00:01:31Z"}]
TAKEN_UP = {"startTime": "1970-01-01T00:01:30Z"}
RUNNING = {"state": {"running": {"startedAt": "1970-01-01T00:01:30Z"}}}
ENDED = {
    "state": {"terminated": {"startedAt": "1970-01-01T00:01:30Z", "finishedAt": "1970-01-01T00:01:32Z"}},
}


def test_a_binding_that_was_taken_back_before_anybody_watched_may_be_dated_to_when_the_kubelet_took_the_pod_up() -> (
    None
):
    assert deviations(charged_from=90, unwatched=(88, 92)) == []
    assert deviations(charged_from=89, unwatched=(88, 92)) == []
    assert len(deviations(charged_from=91, unwatched=(88, 92))) == 1
    assert len(deviations(charged_from=88, unwatched=(88, 92))) == 1


def test_a_binding_that_could_be_read_is_dated_right() -> None:
    assert len(deviations(charged_from=90, unwatched=(92, 99))) == 1
    assert len(deviations(charged_from=90, unwatched=(88, 92), taken_back=False)) == 1


def test_a_pod_that_ended_before_the_second_of_its_binding_had_nothing() -> None:
    state = {"terminated": {"startedAt": "1970-01-01T00:01:28Z", "finishedAt": "1970-01-01T00:01:28Z"}}
    ended = pod(phase="Failed", conditions=BOUND, containerStatuses=[{"state": state}])
    forms: list[Form] = [("ADDED", ended, 89 * SECOND_US), ("DELETED", ended, 90 * SECOND_US)]

    assert list(exactly(forms, [], [])) == []


def deviations(*, charged_from: int, unwatched: Interval, taken_back: bool = True) -> list[str]:
    """What is found wrong with a pod bound at 89 s, taken back at 91 s, if at all, and released at 92 s."""
    last = TAKEN_BACK if taken_back else BOUND
    forms: list[Form] = [
        ("ADDED", pod(phase="Pending", conditions=BOUND), 89 * SECOND_US),
        ("MODIFIED", pod(phase="Running", conditions=BOUND, containerStatuses=[RUNNING], **TAKEN_UP), 90 * SECOND_US),
        ("MODIFIED", pod(phase="Running", conditions=last, containerStatuses=[RUNNING], **TAKEN_UP), 91 * SECOND_US),
        ("DELETED", pod(phase="Succeeded", conditions=last, containerStatuses=[ENDED], **TAKEN_UP), 94 * SECOND_US),
    ]
    charged = [(charged_from, 90, "starting"), (max(charged_from, 90), 92, "running")]
    rows: Rows = [
        ("uid", "batch", "team-gamma", state, 1_000_000, start * SECOND_US, end * SECOND_US)
        for start, end, state in charged
        if start < end
    ]
    return list(exactly(forms, rows, [(unwatched[0] * SECOND_US, unwatched[1] * SECOND_US)]))


def pod(**status: object) -> Json:
    return {
        "metadata": {"namespace": "gamma"},
        "spec": {"priorityClassName": "batch", "containers": [{"resources": {"limits": {GPU: "1"}}}]},
        "status": status,
    }
