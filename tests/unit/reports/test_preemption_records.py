"""The record of a preemption of a job: all of its pods, the rule, the loss, and whether that is final."""

from datetime import UTC
from decimal import Decimal

import pytest
from msgspec.structs import replace

from gputally.model.disruptions import CLOSED_US, QUEUE_CLOSED_US, Cause, Preemption
from gputally.model.lost_work import CheckpointSource
from gputally.model.units import US_PER_HOUR, US_PER_SECOND
from gputally.reports.disruptions import DisruptionLine
from gputally.reports.job_preemptions import SETTLED_US, grouped, is_due
from gputally.reports.preemption_records import JobPreemptionRow, record_row, record_text, rule_of
from tests.unit.reports.job_lines import AT, BY, BY_QUEUE, LOST, job, line, of_preemptor


def row(*lines: DisruptionLine, tiers_only: bool = False, after_us: int = 0) -> JobPreemptionRow:
    return record_row(job(*lines), UTC, now_us=AT + after_us, tiers_only=tiers_only)


SECOND = line(victim_uid="b", victim_name="train-1", node="n2", replaced_us=None)


def test_pods_gpus_and_losses_add_up() -> None:
    found = row(line(), SECOND)

    assert (found.id, found.pods, found.nodes) == ("a", ["train-0", "train-1"], ["n1", "n2"])
    assert (found.gpus, found.lost_gpu_hours, found.lost_pods) == (Decimal(8), Decimal(10), 2)
    assert found.lost_costs == {"EUR": Decimal(22)}
    assert found.is_lost_upper_bound
    assert (found.preemptors, found.preemptor_tiers) == (["prod/chat-0"], ["serving"])


def test_it_is_replaced_and_released_once_all_pods_are() -> None:
    assert row(line(), line(victim_uid="b", released_us=None)).released is None
    assert row(line(), SECOND).replaced is None
    assert row(line()).replaced is not None


@pytest.mark.parametrize(
    "missing",
    [
        line(released_us=None),
        line(by=None),
        line(lost=None),
        line(lost=replace(LOST, is_final=False)),
    ],
    ids=["end", "preemptor", "loss", "group"],
)
def test_it_is_final_when_all_is_known_or_nothing_more_is_awaited(missing: DisruptionLine) -> None:
    assert row().is_final
    assert not row(line(), missing).is_final
    assert row(line(), missing, after_us=US_PER_HOUR + 5 * US_PER_SECOND).is_final


@pytest.mark.parametrize(
    ("by", "rule", "for_tenants"),
    [
        (
            BY,
            (
                "priority 10000 of class inference-critical is above priority 100 of class training-low, "
                "policy PreemptLowerPriority"
            ),
            "the priority of tier serving is above priority 100 of class training-low",
        ),
        (
            replace(of_preemptor(BY, priority=100), victim_class=""),
            "not permitted: priority 100 of class inference-critical is not above priority 100 without a class",
            "not permitted: the priority of tier serving is not above priority 100 without a class",
        ),
        (
            of_preemptor(BY, may_preempt=False),
            "not permitted: priority 10000 of class inference-critical has the policy Never",
            "not permitted: the priority of tier serving has the policy Never",
        ),
        (of_preemptor(BY, priority=None), "not known", "not known"),
        (
            BY_QUEUE,
            "InClusterQueue (prioritization in the ClusterQueue): priority 200 before priority 150",
            "InClusterQueue (prioritization in the ClusterQueue): tier serving before priority 150",
        ),
        (
            replace(BY_QUEUE, victim_priority=None),
            "InClusterQueue (prioritization in the ClusterQueue)",
            "InClusterQueue (prioritization in the ClusterQueue)",
        ),
        (
            replace(BY_QUEUE, queue_rule="InCohortReclamation"),
            "InCohortReclamation (reclamation within the cohort)",
            "InCohortReclamation (reclamation within the cohort)",
        ),
        (replace(BY_QUEUE, queue_rule=""), "not known", "not known"),
        (replace(BY_QUEUE, queue_rule="OfALaterVersion"), "OfALaterVersion", "OfALaterVersion"),
        (None, "not known", "not known"),
    ],
)
def test_the_rule_names_what_permitted_it(by: Preemption | None, rule: str, for_tenants: str) -> None:
    assert rule_of(by, tiers_only=False) == rule
    assert rule_of(by, tiers_only=True) == for_tenants


@pytest.mark.parametrize(("by", "cause"), [(BY, Cause.PREEMPTION), (BY_QUEUE, Cause.QUEUE_PREEMPTION)])
def test_with_tiers_alone_nothing_else_of_the_preemptor_is_in_the_record(by: Preemption, cause: Cause) -> None:
    found = row(line(by=by, cause=cause), tiers_only=True)

    assert found.preemptors is None
    assert len(found.advice) == 2
    hidden = ("prod", "chat", "inference", str(by.preemptor_priority))
    assert not any(word in repr(found) + record_text(found) for word in hidden)


def test_the_text_says_what_happened_what_it_cost_and_what_would_have_helped() -> None:
    assert record_text(row(tiers_only=True)) == (
        "ml/Job/train of tier batch: pod train-0 with 4 GPUs preempted at 2027-01-15 08:00:00 UTC by pods of tier "
        "serving. Rule: the priority of tier serving is above priority 100 of class training-low. "
        "Lost: up to 5.00 GPU-hours, up to 11.00 EUR. "
        "A checkpoint every 30m would have lost 2.00 instead of up to 5.00 GPU-hours. "
        "Pods of a PriorityClass that is not below that of tier serving would not have been preempted."
    )
    idle = replace(LOST, gpu_time=0, costs=(), basis=CheckpointSource.NO_WORK, members=0, at_intervals=())
    assert " It had no work to lose. " in record_text(row(line(lost=idle)))
    unknown = record_text(row(line(by=None, lost=None)))
    assert unknown.endswith("Lost work is not known yet. Nothing that gputally knows of would have prevented it.")


def test_names_of_owners_are_no_markup_in_the_text() -> None:
    text = record_text(row(line(job_kind="<!channel>", job="[x](http://evil)@here\n*")))

    assert not set("<>![]@\n*") & set(text)


def test_a_queue_has_its_own_rules_so_its_record_does_not_say_whether_priorities_permit_it() -> None:
    found = row(line(by=BY_QUEUE, cause=Cause.QUEUE_PREEMPTION))

    assert (found.is_permitted, found.preemptors, found.preemptor_tiers) == (None, ["prod/chat"], ["serving"])
    assert found.is_final


def test_pods_that_an_earlier_version_recorded_without_the_record_of_their_job_are_one_each() -> None:
    lines = (line(cause=Cause.QUEUE_PREEMPTION, victim_uid=uid, job_preemption="") for uid in "ab")

    assert [each.id for each in grouped(lines)] == ["a", "b"]


GATE_US = CLOSED_US
QUEUED = line(by=BY_QUEUE, cause=Cause.QUEUE_PREEMPTION, replaced_us=None)


@pytest.mark.parametrize(
    ("lines", "after_us", "due"),
    [
        ((line(),), GATE_US - 1, False),
        ((line(),), GATE_US, True),
        ((line(), line(decided_us=AT + 1)), GATE_US, False),
        ((SECOND,), GATE_US, False),
        ((SECOND,), 5 * US_PER_SECOND + SETTLED_US, True),
        ((line(job_kind="Pod", replaced_us=None),), GATE_US, True),
        ((line(lost=None),), GATE_US, False),
        ((line(lost=None),), 5 * US_PER_SECOND + SETTLED_US, True),
        ((line(released_us=None),), 5 * US_PER_SECOND + SETTLED_US, False),
        ((line(released_us=None),), US_PER_HOUR, True),
        ((QUEUED,), QUEUE_CLOSED_US - 1, False),
        ((QUEUED,), QUEUE_CLOSED_US, True),
    ],
    ids=[
        *("pods may be added", "complete", "the last pod was chosen later", "not replaced", "not replaced for long"),
        *("never replaced", "loss not known", "loss never known", "still there", "there for long"),
        *("pods of a queue may be added", "jobs in a queue may wait for hours"),
    ],
)
def test_a_record_is_delivered_once_it_is_complete_or_nothing_more_is_awaited(
    lines: tuple[DisruptionLine, ...], after_us: int, *, due: bool
) -> None:
    now_us = AT + after_us
    assert is_due(job(*lines), queued_us=AT, pods_complete_us=now_us, now_us=now_us) is due


def test_what_a_process_learned_late_gets_as_much_time() -> None:
    queued_us = AT + US_PER_HOUR
    unknown = job(line(by=None))

    for after_us, due in ((1, False), (SETTLED_US, True)):
        now_us = queued_us + after_us
        assert is_due(unknown, queued_us=queued_us, pods_complete_us=now_us, now_us=now_us) is due


def test_a_queue_whose_workload_was_observed_late_may_stop_further_pods_as_long() -> None:
    queued_us = AT + US_PER_HOUR

    for after_us, due in ((QUEUE_CLOSED_US - 1, False), (QUEUE_CLOSED_US, True)):
        now_us = queued_us + after_us
        assert is_due(job(QUEUED), queued_us=queued_us, pods_complete_us=now_us, now_us=now_us) is due


def test_no_record_is_delivered_while_the_watch_of_pods_is_behind() -> None:
    assert not is_due(job(), queued_us=AT, pods_complete_us=AT, now_us=AT + US_PER_HOUR)
