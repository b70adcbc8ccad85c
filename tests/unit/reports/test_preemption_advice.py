"""Each advice states what the ledger proves, and is silent where it would not have helped."""

from typing import Any

import pytest
from msgspec.structs import replace

from gputally.frameworks.kueue import QueueRule
from gputally.model.disruptions import Preemption
from gputally.model.lost_work import CheckpointSource
from gputally.model.units import GPU_HOUR, US_PER_SECOND
from gputally.reports.disruptions import DisruptionLine
from gputally.reports.preemption_advice import advice_for
from tests.unit.reports.job_lines import AT, BY, BY_QUEUE, LOST, MINUTE_US, job, line, of_preemptor


def advice(*lines: DisruptionLine, tiers_only: bool = False) -> dict[str, str]:
    return {each.name: each.text for each in advice_for(job(*lines), tiers_only=tiers_only)}


def test_a_checkpoint_as_rare_as_possible_that_halves_the_loss_is_advised() -> None:
    known = replace(LOST, basis=CheckpointSource.ANNOTATION)

    assert advice(line(lost=known))["checkpoint"] == (
        "A checkpoint every 30m would have lost 2.00 instead of 5.00 GPU-hours."
    )
    assert "instead of up to 5.00" in advice()["checkpoint"]


def test_the_losses_of_all_pods_of_the_job_are_compared() -> None:
    second = replace(LOST, gpu_time=GPU_HOUR // 1000, at_intervals=tuple((each, 0) for each, _ in LOST.at_intervals))

    text = advice(line(), line(victim_uid="b", lost=second))["checkpoint"]

    assert text == "A checkpoint every 30m would have lost 2.00 instead of up to 5.00 GPU-hours."


@pytest.mark.parametrize(
    "lost",
    [
        None,
        replace(LOST, gpu_time=0, at_intervals=tuple((each, 0) for each, _ in LOST.at_intervals)),
        replace(LOST, gpu_time=GPU_HOUR // 5),
        replace(LOST, gpu_time=GPU_HOUR // 2 - 1),
    ],
    ids=["not known", "nothing lost", "no interval loses less", "none halves it"],
)
def test_checkpoints_that_would_not_have_helped_are_not_advised(lost: object) -> None:
    assert "checkpoint" not in advice(line(lost=lost))  # type: ignore[arg-type] # a case


def test_a_loss_that_rounds_to_nothing_is_not_called_nothing() -> None:
    lost = replace(LOST, at_intervals=((10 * MINUTE_US, 1),))

    assert "would have lost less than 0.01 instead" in advice(line(lost=lost))["checkpoint"]


KILLED: dict[str, Any] = {"exit_code": 137, "stopped_us": AT + 30 * US_PER_SECOND}


def test_a_pod_that_was_killed_when_its_grace_period_ended_needs_a_longer_one() -> None:
    assert advice(line(**KILLED))["grace-period"].startswith("The pod was killed when the grace period of 30 s ended: ")
    assert advice(line(**KILLED), line())["grace-period"].startswith("1 of 2 pods was killed")


@pytest.mark.parametrize(
    "victim",
    [
        {},
        KILLED | {"exit_code": 0},
        KILLED | {"stopped_us": AT + 3 * US_PER_SECOND},
        KILLED | {"stopped_us": None},
        KILLED | {"lost": replace(LOST, gpu_time=0)},
        KILLED | {"lost": None},
    ],
    ids=["ended in time", "ended by itself", "killed by something else", "not known", "saved", "loss not known"],
)
def test_a_grace_period_that_sufficed_is_not_mentioned(victim: dict[str, Any]) -> None:
    assert "grace-period" not in advice(line(**victim))


def test_retries_that_preemptions_used_up_are_counted() -> None:
    pods = [line(uses_retry=True), line(victim_uid="b", uses_retry=True), line(victim_uid="c")]

    assert advice(*pods)["retries"].startswith("2 of 3 pods were counted as failed by the Job: ")
    assert "retries" not in advice()


def test_the_lowest_priority_that_no_preemptor_would_have_preempted_is_named() -> None:
    higher = of_preemptor(BY, priority=20_000)

    assert advice(line(), line(victim_uid="b", by=higher))["priority"] == (
        "Pods of a PriorityClass of 20000 or more would not have been preempted; theirs is 100."
    )


def test_without_names_a_higher_priority_is_that_of_the_tier() -> None:
    text = advice(tiers_only=True)["priority"]

    assert text == "Pods of a PriorityClass that is not below that of tier serving would not have been preempted."


@pytest.mark.parametrize(
    "by",
    [
        None,
        of_preemptor(BY, priority=None),
        of_preemptor(BY, may_preempt=False),
        of_preemptor(BY, priority=50),
        of_preemptor(BY, priority=2 * 10**9),
    ],
    ids=["not known", "priority not known", "never preempts", "not permitted", "of the system"],
)
def test_no_priority_is_advised_that_would_not_have_helped_or_that_nobody_may_have(by: object) -> None:
    assert "priority" not in advice(line(by=by))  # type: ignore[arg-type] # a case


def test_in_a_cluster_queue_a_priority_above_that_of_the_preemptor_would_have_prevented_it() -> None:
    found = line(by=BY_QUEUE)

    assert advice(found)["priority"] == (
        "A priority above 200 in its ClusterQueue would have prevented it; that of the workload is 150."
    )
    assert "above that of tier serving in its" in advice(found, tiers_only=True)["priority"]


@pytest.mark.parametrize(
    "by",
    [
        replace(BY_QUEUE, queue_rule=""),
        of_preemptor(BY_QUEUE, priority=None),
        replace(BY_QUEUE, victim_priority=None),
        replace(BY_QUEUE, victim_priority=201),
    ],
    ids=["rule not known", "priority not known", "own priority not known", "other reasons"],
)
def test_no_priority_is_advised_where_that_of_the_queue_does_not_explain_it(by: Preemption) -> None:
    assert {"priority", "quota"}.isdisjoint(advice(line(by=by)))


@pytest.mark.parametrize("rule", [each for each in QueueRule if each is not QueueRule.IN_CLUSTER_QUEUE])
def test_a_cluster_queue_that_borrows_nothing_keeps_its_workloads(rule: QueueRule) -> None:
    found = advice(line(by=replace(BY_QUEUE, queue_rule=rule.value)))

    assert "stays within its nominal quota" in found["quota"]
    assert "priority" not in found


def test_nothing_is_advised_if_nothing_is_known() -> None:
    assert advice(line(by=None, lost=None)) == {}
