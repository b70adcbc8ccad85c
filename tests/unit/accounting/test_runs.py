"""When pods end whose containers start again and again."""

from dataclasses import replace

import pytest

from gputally.accounting.facts import lifetime
from gputally.accounting.facts.release import released
from gputally.model.allocation import End
from gputally.model.pod_record import PodRecord
from tests.core.manifests import PodForm, as_pod, us

BOUND = PodForm(created=10, node="n1", scheduled=12)
RUNNING = replace(BOUND, started=15)
FINISHED = replace(RUNNING, phase="Succeeded", finished=40)
WAITING = replace(RUNNING, finished=40, waiting=True)
NEW = PodRecord(uid="uid-a", namespace="ml", name="a", units=(), created_us=us(10), accepted=False)


def seen(*forms: tuple[PodForm, float]) -> PodRecord:
    """What is known after these forms were observed."""
    record = NEW
    for form, at in forms:
        record = lifetime.seen(record, as_pod(form), at_us=us(at), since_us=us(at))
    return record


def gone(record: PodRecord, form: PodForm, at: float) -> PodRecord:
    return lifetime.gone(record, as_pod(form), at_us=us(at), since_us=us(at))


def end(record: PodRecord) -> tuple[End | None, int | None]:
    record = released(record)
    return record.end_by, record.end_us


def test_a_container_that_waits_between_two_runs_has_no_known_end() -> None:
    """PodGC made its pod terminal: until then the pod held its devices, or its node was lost."""
    collected = replace(WAITING, phase="Failed", marked=70, mark="DeletionByPodGC")

    assert end(seen((WAITING, 41))) == (None, None)
    assert end(seen((WAITING, 41), (collected, 72))) == (End.TERMINAL, us(70))
    assert end(gone(seen((WAITING, 41)), collected, 72)) == (End.TERMINAL, us(70))


@pytest.mark.parametrize("main", [{"waiting": {}}, {}])
def test_an_init_container_that_waits_between_two_runs_has_none_either(main: dict[str, object]) -> None:
    manifest = replace(BOUND, accepted=13, phase="Failed").manifest()
    last = {"terminated": {"startedAt": "2026-07-01T00:00:14Z", "finishedAt": "2026-07-01T00:00:20Z"}}
    manifest["status"]["containerStatuses"] = [{"state": main}]
    manifest["status"]["initContainerStatuses"] = [{"state": {"waiting": {}}, "lastState": last}]

    record = lifetime.seen(NEW, as_pod(manifest), at_us=us(60), since_us=us(60))

    assert end(record) == (End.TERMINAL, us(60))


def test_a_sidecar_that_waits_between_two_runs_is_over_once_all_main_containers_are() -> None:
    """What it waits for does not come any more. It gives nothing back later than they do."""
    manifest = FINISHED.manifest()
    last = {"terminated": {"startedAt": "2026-07-01T00:00:14Z", "finishedAt": "2026-07-01T00:00:44Z"}}
    manifest["status"]["initContainerStatuses"] = [{"state": {"waiting": {}}, "lastState": last}]

    record = lifetime.seen(NEW, as_pod(manifest), at_us=us(60), since_us=us(60))

    assert end(record) == (End.FINISHED, us(44))


STOPPED = replace(WAITING, waiting=False, phase="Failed", restart_policy="Always", deleted=60)
"""What a kubelet writes of a container that waited for its next run when its pod was deleted."""


def test_a_pod_whose_containers_start_again_holds_its_devices_until_its_deletion_is_asked_for() -> None:
    last = replace(STOPPED, deleted=63, grace=0)

    assert end(seen((STOPPED, 62))) == (End.FINISHED, us(60))
    assert end(gone(seen((STOPPED, 62)), last, 63)) == (End.FINISHED, us(60))
    assert end(gone(NEW, last, 63)) == (End.FINISHED, us(63))
    assert end(seen((replace(STOPPED, finished=65), 66))) == (End.FINISHED, us(65))


@pytest.mark.parametrize(
    ("policy", "phase", "until"),
    [("Never", "Failed", 40), ("OnFailure", "Succeeded", 40), ("OnFailure", "Failed", 60), ("Always", "Succeeded", 60)],
)
def test_a_pod_that_finished_by_itself_ends_with_its_containers(policy: str, phase: str, until: int) -> None:
    assert end(seen((replace(STOPPED, restart_policy=policy, phase=phase), 62))) == (End.FINISHED, us(until))


def test_a_container_with_a_policy_of_its_own_may_end_its_pod_by_itself() -> None:
    manifest = STOPPED.manifest()
    manifest["spec"]["containers"][0]["restartPolicy"] = "Never"

    assert end(lifetime.seen(NEW, as_pod(manifest), at_us=us(62), since_us=us(62))) == (End.FINISHED, us(40))


def test_a_pod_that_its_kubelet_evicted_ended_before_its_deletion() -> None:
    evicted = replace(STOPPED, deleted=None)

    assert end(seen((evicted, 42), (STOPPED, 62))) == (End.FINISHED, us(40))
    assert end(seen((STOPPED, 62), (evicted, 42))) == (End.FINISHED, us(40))
    assert end(seen((replace(STOPPED, reason="Evicted"), 62))) == (End.FINISHED, us(40))


def test_a_pod_that_would_have_gone_on_ends_when_it_is_collected() -> None:
    """Its container had just ended when its node was lost."""
    collected = replace(STOPPED, deleted=None, marked=70, mark="DeletionByPodGC")

    assert end(seen((collected, 72))) == (End.TERMINAL, us(70))
    assert end(seen((replace(collected, restart_policy="Never"), 72))) == (End.FINISHED, us(40))
