from dataclasses import replace

import pytest
from msgspec import structs

from gputally.accounting.facts import lifetime
from gputally.accounting.facts.lifetime import created_us, marks
from gputally.accounting.facts.release import released
from gputally.model.allocation import End, Gap
from gputally.model.pod_record import PodRecord
from tests.core.manifests import NEVER, PodForm, as_pod, us

PENDING = PodForm(created=10)
BOUND = replace(PENDING, node="n1", scheduled=12)
RUNNING = replace(BOUND, started=15)
FINISHED = replace(RUNNING, phase="Succeeded", finished=40)
NEW = PodRecord(uid="uid-a", namespace="ml", name="a", units=(), created_us=us(10), accepted=False)


def seen(*forms: tuple[PodForm, float], since: float | None = None) -> PodRecord:
    """What is known after these forms were observed."""
    record = NEW
    for form, at in forms:
        record = lifetime.seen(record, as_pod(form), at_us=us(at), since_us=us(at if since is None else since))
    return record


def gone(record: PodRecord, form: PodForm, at: float, since: float | None = None) -> PodRecord:
    return lifetime.gone(record, as_pod(form), at_us=us(at), since_us=us(at if since is None else since))


def end(record: PodRecord) -> tuple[End | None, int | None]:
    record = released(record)
    return record.end_by, record.end_us


def gap(record: PodRecord) -> Gap | None:
    return released(record).gap


def test_an_allocation_begins_when_the_api_says_the_pod_was_scheduled_not_when_it_was_seen() -> None:
    assert seen((BOUND, 30)).scheduled_us == us(12)


def test_a_pending_pod_is_not_scheduled() -> None:
    assert seen((PENDING, 30)).scheduled_us is None


def test_a_pod_bound_by_hand_began_at_its_creation_once_its_kubelet_took_it_up() -> None:
    by_hand = replace(BOUND, scheduled=None)

    assert seen((by_hand, 30)).scheduled_us is None
    assert seen((replace(by_hand, accepted=12), 30)).scheduled_us == us(10)
    accepted = replace(BOUND, accepted=12)
    assert seen((by_hand, 30), (accepted, 31)).scheduled_us == us(10)
    assert seen((accepted, 31), (by_hand, 30)).scheduled_us == us(10)


def test_a_start_that_failed_is_none_though_the_runtime_dates_it_to_1970() -> None:
    failed = replace(BOUND, accepted=13, start_failed=14)

    assert seen((failed, 20)).started_us is None
    assert seen((failed, 20), (replace(failed, started=33), 34)).started_us == us(33)


def test_a_pod_that_only_failed_to_start_was_starting_until_it_ended() -> None:
    failed = replace(BOUND, accepted=13, start_failed=14, finished=14, phase="Failed")

    assert seen((failed, 20)).started_us is None
    assert end(seen((failed, 20))) == (End.FINISHED, us(14))


def test_an_end_in_1970_is_none() -> None:
    manifest = replace(FINISHED, finished=40).manifest()
    manifest["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = NEVER

    record = lifetime.seen(NEW, as_pod(manifest), at_us=us(41), since_us=us(41))
    assert end(record) == (End.TERMINAL, us(41))


def test_the_first_start_of_any_container_begins_running() -> None:
    manifest = RUNNING.manifest()
    restarted = {"running": {"startedAt": "2026-07-01T00:00:30Z"}}
    before = {"terminated": {"startedAt": "2026-07-01T00:00:20Z", "finishedAt": "2026-07-01T00:00:29Z"}}
    manifest["status"]["containerStatuses"] = [{"state": restarted, "lastState": before}, {"state": {"waiting": {}}}]

    assert lifetime.seen(NEW, as_pod(manifest), at_us=us(60), since_us=us(60)).started_us == us(20)


def test_a_restarted_container_does_not_move_the_start() -> None:
    assert seen((RUNNING, 16), (replace(RUNNING, started=33), 34)).started_us == us(15)


def test_a_finished_pod_ended_at_its_last_container() -> None:
    manifest = FINISHED.manifest()
    last = {"state": {"terminated": {"finishedAt": "2026-07-01T00:00:44Z"}}}
    manifest["status"]["initContainerStatuses"] = [last]

    record = lifetime.seen(NEW, as_pod(manifest), at_us=us(60), since_us=us(60))

    assert end(record) == (End.FINISHED, us(44))


def test_a_finished_container_ends_nothing_while_the_pod_goes_on() -> None:
    assert end(seen((replace(FINISHED, phase="Running"), 41))) == (None, None)


def test_a_terminal_pod_without_times_ended_when_it_was_first_seen_so() -> None:
    terminal = replace(RUNNING, phase="Failed")

    assert end(seen((terminal, 50), (terminal, 60))) == (End.TERMINAL, us(50))
    assert end(seen((terminal, 60), (terminal, 50))) == (End.TERMINAL, us(50))


def test_a_finishing_time_replaces_an_end_that_was_only_observed() -> None:
    assert end(seen((replace(RUNNING, phase="Failed"), 50), (FINISHED, 51))) == (End.FINISHED, us(40))


def test_of_several_finishing_times_the_last_counts() -> None:
    later = replace(FINISHED, finished=43)

    assert end(seen((FINISHED, 50), (later, 51))) == (End.FINISHED, us(43))
    assert end(seen((later, 51), (FINISHED, 50))) == (End.FINISHED, us(43))


def test_a_pod_deleted_by_force_ended_with_its_deletion() -> None:
    assert end(gone(seen((RUNNING, 16)), RUNNING, 70)) == (End.DELETED, us(70))


def test_a_deletion_after_the_end_moves_nothing() -> None:
    assert end(gone(seen((FINISHED, 41)), FINISHED, 70)) == (End.FINISHED, us(40))


def test_the_last_form_of_a_deletion_may_tell_the_end() -> None:
    assert end(gone(seen((RUNNING, 16)), FINISHED, 70)) == (End.FINISHED, us(40))


def test_news_of_the_end_after_the_deletion_still_counts() -> None:
    deleted = gone(seen((RUNNING, 16)), RUNNING, 70)

    assert end(lifetime.seen(deleted, as_pod(FINISHED), at_us=us(71), since_us=us(71))) == (End.FINISHED, us(40))
    terminal = as_pod(replace(RUNNING, phase="Failed"))
    assert end(lifetime.seen(deleted, terminal, at_us=us(65), since_us=us(65))) == (End.TERMINAL, us(65))


def test_a_forced_deletion_told_late_on_a_live_stream_lies_between_its_request_and_then() -> None:
    forced = replace(RUNNING, deleted=50, grace=0)

    late, slow, prompt = (gone(seen((RUNNING, 16)), forced, at) for at in (53, 51.5, 50.5))

    assert (end(late), gap(late)) == ((End.DELETED, us(50)), Gap(from_us=us(50), to_us=us(53)))
    assert (end(slow), gap(slow)) == ((End.DELETED, us(51)), None)
    assert (end(prompt), gap(prompt)) == ((End.DELETED, us(50.5)), None)


def test_a_deletion_told_after_an_interruption_began_with_its_last_request() -> None:
    forced = replace(RUNNING, deleted=50, grace=0)
    graceful = replace(RUNNING, deleted=50, grace=30)

    assert gap(gone(seen((RUNNING, 16)), forced, 70, since=20)) == Gap(from_us=us(50), to_us=us(70))
    assert gap(gone(seen((RUNNING, 16)), forced, 70, since=60)) == Gap(from_us=us(50), to_us=us(70))
    assert gap(gone(seen((RUNNING, 16)), graceful, 70, since=20)) == Gap(from_us=us(20), to_us=us(70))


def test_a_pod_that_vanished_is_charged_up_to_where_it_was_last_known() -> None:
    record = lifetime.vanished(seen((RUNNING, 16)), at_us=us(90), since_us=us(60))

    assert end(record) == (End.VANISHED, us(60))
    assert gap(record) == Gap(from_us=us(60), to_us=us(90))


def test_a_blind_interval_begins_no_earlier_than_what_is_known_of_the_pod() -> None:
    started_unseen = replace(RUNNING, started=75)

    record = gone(seen((BOUND, 13)), started_unseen, 90, since=60)

    assert gap(record) == Gap(from_us=us(75), to_us=us(90))
    assert end(record) == (End.DELETED, us(75))


def test_an_end_with_a_timestamp_leaves_nothing_blind() -> None:
    assert gap(seen((replace(RUNNING, phase="Failed"), 50), since=20)) == Gap(from_us=us(20), to_us=us(50))
    assert gap(seen((replace(RUNNING, phase="Failed"), 50), (FINISHED, 51), since=20)) is None
    assert gap(lifetime.vanished(seen((FINISHED, 41)), at_us=us(90), since_us=us(60))) is None


def test_a_second_loss_does_not_widen_a_blind_interval() -> None:
    record = lifetime.vanished(seen((RUNNING, 16)), at_us=us(90), since_us=us(60))

    assert lifetime.vanished(record, at_us=us(99), since_us=us(50)) == record


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("OutOfnvidia.com/gpu", ""),
        ("OutOfcpu", ""),
        ("UnexpectedAdmissionError", ""),
        ("TopologyAffinityError", ""),
        ("NodeAffinity", ""),
        ("New", "Pod was rejected: too many devices"),
    ],
)
def test_a_pod_the_kubelet_refused_never_held_anything(reason: str, message: str) -> None:
    record = seen((BOUND, 13), (replace(BOUND, phase="Failed", reason=reason, message=message), 14))

    assert released(record).end_by is End.REJECTED
    assert lifetime.never_held(record, End.REJECTED)


def test_a_failed_pod_that_ran_was_not_refused() -> None:
    evicted = replace(RUNNING, phase="Failed", reason="Evicted", message="The node was low on resource: memory.")

    assert end(seen((evicted, 50))) == (End.TERMINAL, us(50))


def test_a_pod_refused_by_a_restarted_kubelet_after_it_ran_is_charged_until_then() -> None:
    refused = replace(BOUND, statuses=False, phase="Failed", reason="UnexpectedAdmissionError")

    for record in (seen((RUNNING, 16), (refused, 80)), seen((refused, 80), (RUNNING, 16))):
        assert end(record) == (End.REJECTED, us(80))
        assert not lifetime.never_held(record, End.REJECTED)


@pytest.mark.parametrize(
    "accepted",
    [
        replace(BOUND, accepted=13),
        replace(BOUND, accepted=13, inits=((14, None),)),
        replace(BOUND, accepted=13, inits=((14, 15),)),
    ],
    ids=["pulls its images", "initializes", "has initialized"],
)
def test_a_pod_refused_after_it_was_accepted_held_its_devices_until_then(accepted: PodForm) -> None:
    refused = replace(BOUND, accepted=13, statuses=False, phase="Failed", reason="UnexpectedAdmissionError")

    for record in (seen((accepted, 16), (refused, 80)), seen((refused, 80), (accepted, 16))):
        assert end(record) == (End.REJECTED, us(80))
        assert not lifetime.never_held(record, End.REJECTED)


def test_a_refusal_in_an_observation_gap_ends_the_allocation_at_its_start_at_the_latest() -> None:
    refused = replace(BOUND, accepted=13, statuses=False, phase="Failed", reason="UnexpectedAdmissionError")
    accepted = seen((replace(BOUND, accepted=13), 16))

    record = lifetime.seen(accepted, as_pod(refused), at_us=us(80), since_us=us(50))

    assert end(record) == (End.REJECTED, us(50))
    assert gap(record) == Gap(from_us=us(50), to_us=us(80))


def test_a_start_time_without_containers_is_that_of_a_refusal() -> None:
    """A restarted kubelet writes it before the phase, as long as it has not looked at all of its pods."""
    pending = replace(BOUND, accepted=13, statuses=False)
    record = seen((pending, 13), (replace(pending, phase="Failed", reason="UnexpectedAdmissionError"), 15))

    assert lifetime.never_held(record, End.REJECTED)


def test_a_refused_pod_with_a_container_that_ran_had_been_accepted() -> None:
    refused = replace(BOUND, accepted=13, inits=((14, 15),), phase="Failed", reason="UnexpectedAdmissionError")

    assert end(seen((refused, 80))) == (End.REJECTED, us(80))
    assert not lifetime.never_held(seen((refused, 80)), End.REJECTED)


def test_deletion_was_asked_for_a_grace_period_before_the_deletion_timestamp() -> None:
    assert seen((replace(RUNNING, deleted=50, grace=30), 51)).deletion_us == us(50)


def test_a_shortened_grace_period_does_not_move_the_request() -> None:
    """The API server moves both fields together."""
    assert seen(
        (replace(RUNNING, deleted=50, grace=30), 51), (replace(RUNNING, deleted=50, grace=5), 53)
    ).deletion_us == us(50)


def test_the_last_delete_with_grace_zero_does_not_move_the_request() -> None:
    asked, last = replace(FINISHED, deleted=35), replace(FINISHED, deleted=42, grace=0)

    assert gone(seen((asked, 36)), last, 42).deletion_us == us(35)


def test_times_ahead_of_our_clock_are_held_to_the_observation() -> None:
    """The server's clock is ahead; what nodes write may be so by 2 s, see test_node_clock.py."""
    assert seen((replace(BOUND, scheduled=22), 13)).scheduled_us == us(13)
    assert seen((replace(RUNNING, started=18), 16)).started_us == us(16)
    assert end(seen((replace(FINISHED, finished=50), 41))) == (End.FINISHED, us(41))
    assert seen((replace(RUNNING, deleted=60), 51)).deletion_us == us(51)
    assert created_us(as_pod(replace(PENDING, created=20)), us(11)) == us(11)


def test_a_pod_without_creation_time_was_created_when_it_was_seen() -> None:
    assert created_us(as_pod({"metadata": {"uid": "u"}}), us(11)) == us(11)


@pytest.mark.parametrize("reason", ["PreemptionByScheduler", "PreemptionByKubeScheduler"])
def test_a_mark_of_the_scheduler_is_a_preemption(reason: str) -> None:
    assert marks(NEW, as_pod(replace(RUNNING, marked=30, mark=reason)), us(31))[0] == us(30)


@pytest.mark.parametrize(
    "form",
    [
        RUNNING,
        replace(RUNNING, marked=30, mark="EvictionByEvictionAPI"),
        replace(RUNNING, marked=30, mark="DeletionByPodGC"),
        replace(RUNNING, marked=30, mark_status="False"),
    ],
)
def test_any_other_mark_is_none(form: PodForm) -> None:
    assert marks(NEW, as_pod(form), us(31))[0] is None


@pytest.mark.parametrize(("deleted", "stays"), [(None, False), (30, True)])
def test_a_mark_is_taken_back_only_until_deletion_is_asked_for(*, deleted: int | None, stays: bool) -> None:
    marked = structs.replace(seen((replace(RUNNING, deleted=deleted), 31)), preempted_us=us(30))
    later = as_pod(replace(RUNNING, deleted=deleted, marked=40, mark="DeletionByPodGC"))

    assert marks(marked, later, us(41))[0] == (us(30) if stays else None)


def test_the_first_of_two_marks_counts_when_two_pods_preempt_the_same_one() -> None:
    marked = structs.replace(NEW, preempted_us=us(30))

    assert marks(marked, as_pod(replace(RUNNING, marked=31)), us(32))[0] == us(30)
