"""Which differences a campaign's verdict accepts as unknowable."""

from typing import TYPE_CHECKING

from labs.campaign.verdict import SECOND_US, Interval, exact_deviations
from tests.cluster.manifests import GPU, Json

if TYPE_CHECKING:
    from tests.behaviour.product import Rows
    from tests.behaviour.recorder import Form

BOUND = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "1970-01-01T00:01:29Z"}]
REVERTED = [{"type": "PodScheduled", "status": "False", "lastTransitionTime": "1970-01-01T00:01:31Z"}]
ACCEPTED = {"startTime": "1970-01-01T00:01:30Z"}
RUNNING = {"state": {"running": {"startedAt": "1970-01-01T00:01:30Z"}}}
ENDED = {
    "state": {"terminated": {"startedAt": "1970-01-01T00:01:30Z", "finishedAt": "1970-01-01T00:01:32Z"}},
}


def test_a_binding_reverted_in_a_gap_may_be_dated_to_the_start_time_of_the_kubelet() -> None:
    assert deviations(charged_from=90, gap=(88, 92)) == []
    assert deviations(charged_from=89, gap=(88, 92)) == []
    assert len(deviations(charged_from=91, gap=(88, 92))) == 1
    assert len(deviations(charged_from=88, gap=(88, 92))) == 1


def test_a_binding_that_was_readable_has_the_exact_time() -> None:
    assert len(deviations(charged_from=90, gap=(92, 99))) == 1
    assert len(deviations(charged_from=90, gap=(88, 92), reverted=False)) == 1


def test_a_pod_that_ended_before_the_second_of_its_binding_had_no_gpus() -> None:
    state = {"terminated": {"startedAt": "1970-01-01T00:01:28Z", "finishedAt": "1970-01-01T00:01:28Z"}}
    ended = pod(phase="Failed", conditions=BOUND, containerStatuses=[{"state": state}])
    forms: list[Form] = [("ADDED", ended, 89 * SECOND_US), ("DELETED", ended, 90 * SECOND_US)]

    assert list(exact_deviations(forms, [], [])) == []


def deviations(*, charged_from: int, gap: Interval, reverted: bool = True) -> list[str]:
    """Deviations of a pod whose binding is at 89 s, is reverted at 91 s if `reverted`, and that ends at 92 s."""
    last = REVERTED if reverted else BOUND
    forms: list[Form] = [
        ("ADDED", pod(phase="Pending", conditions=BOUND), 89 * SECOND_US),
        ("MODIFIED", pod(phase="Running", conditions=BOUND, containerStatuses=[RUNNING], **ACCEPTED), 90 * SECOND_US),
        ("MODIFIED", pod(phase="Running", conditions=last, containerStatuses=[RUNNING], **ACCEPTED), 91 * SECOND_US),
        ("DELETED", pod(phase="Succeeded", conditions=last, containerStatuses=[ENDED], **ACCEPTED), 94 * SECOND_US),
    ]
    charged = [(charged_from, 90, "starting"), (max(charged_from, 90), 92, "running")]
    rows: Rows = [
        ("uid", "batch", "team-gamma", state, 1_000_000, start * SECOND_US, end * SECOND_US)
        for start, end, state in charged
        if start < end
    ]
    return list(exact_deviations(forms, rows, [(gap[0] * SECOND_US, gap[1] * SECOND_US)]))


def pod(**status: object) -> Json:
    return {
        "metadata": {"namespace": "gamma"},
        "spec": {"priorityClassName": "batch", "containers": [{"resources": {"limits": {GPU: "1"}}}]},
        "status": status,
    }
