"""Pods of one job that are preempted together are one preemption of the job, over restarts and in any order."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields

from gputally.accounting.disruptions.job_preemptions import JobPreemptions
from gputally.model.disruptions import CLOSED_US
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Upserted
from gputally.model.units import US_PER_SECOND
from tests.contract.records import DISRUPTION
from tests.core.manifests import Json, NodeForm, PodForm, us
from tests.core.replay import Replay
from tests.unit.accounting.test_early_end import DISRUPTED, OWNER, job, policy, rule

GROUP = {"kueue.x-k8s.io/pod-group-name": "gang"}


def running(name: str, *, owners: tuple[Json, ...] = (OWNER,), **more: object) -> PodForm:
    form = PodForm(name=name, tier="low", node="n1", created=1, scheduled=10, started=11, owners=owners)
    return replace(form, **more)  # type: ignore[arg-type] # any field


def preempted(form: PodForm, at: int, *, exit_code: int = 143, after: int = 2) -> PodForm:
    phase = "Failed" if exit_code else "Succeeded"
    return replace(form, marked=at, deleted=at, finished=at + after, exit_code=exit_code, phase=phase, version=2)


def cluster(*forms: PodForm) -> Replay:
    replay = Replay()
    replay.see(NodeForm(capacity={"nvidia.com/gpu": 8}), at=1)
    replay.see(*forms, at=20)
    return replay


def together(replay: Replay) -> set[frozenset[str]]:
    """The names of the pods of each preemption of a job."""
    found: dict[str, set[str]] = {}
    for each in replay.fleet.disrupted.victims.known.values():
        found.setdefault(each.job_preemption, set()).add(each.victim_name)
    return set(map(frozenset, found.values()))


def sets(*names: str) -> set[frozenset[str]]:
    return {frozenset(each.split()) for each in names}


def test_pods_of_a_job_that_are_preempted_within_seconds_are_one_preemption() -> None:
    a, b, c = (running(name) for name in "abc")
    replay = cluster(a, b, c)

    replay.see(preempted(a, 50), preempted(b, 59), preempted(c, 61), at=62)

    assert together(replay) == sets("a b", "c")


def test_pods_of_different_jobs_tenants_or_without_a_job_are_never_together() -> None:
    other = running("c", owners=({**OWNER, "name": "other", "uid": "job-other"},))
    foreign = running("d", tier="lower")
    forms = (running("a"), running("b"), other, foreign, running("e", owners=()), running("f", owners=()))
    replay = cluster(*forms)

    replay.see(*(preempted(form, 50) for form in forms), at=51)

    assert together(replay) == sets("a b", "c", "d", "e", "f")


def test_pods_of_a_group_without_a_job_are_together() -> None:
    forms = [running(name, owners=(), labels=GROUP) for name in "ab"]
    replay = cluster(*forms)

    replay.see(*(preempted(form, 50) for form in forms), at=51)

    assert together(replay) == sets("a b")


def test_a_restart_between_two_pods_changes_nothing() -> None:
    a, b = running("a"), running("b")
    replay = cluster(a, b)
    replay.see(preempted(a, 50), at=51)
    replay.flush()
    before = together(replay)
    replay.restart(at=52)

    replay.see(preempted(b, 51), at=300, since=51)

    assert before == sets("a")
    assert together(replay) == sets("a b")


def test_what_a_killed_process_had_not_written_is_found_again() -> None:
    a, b = running("a"), running("b")
    replay = cluster(a, b)
    replay.flush()
    replay.see(preempted(a, 50), at=51)
    replay.restart(at=52)

    replay.see(preempted(a, 50), preempted(b, 50), at=53, since=49)

    assert together(replay) == sets("a b")


def test_a_pod_is_not_added_to_a_preemption_that_may_have_been_delivered() -> None:
    """Its mark is old, but its deletion was requested only now."""
    a, b = running("a"), running("b")
    replay = cluster(a, b)
    replay.see(preempted(a, 50), at=51)
    replay.see(running("other"), at=90)

    replay.see(replace(preempted(b, 50), deleted=91, finished=92), at=92)

    assert together(replay) == sets("a", "b")


def test_what_becomes_known_of_a_pod_later_leaves_it_where_it_is() -> None:
    a, b = running("a"), running("b")
    replay = cluster(a, b)
    replay.see(preempted(a, 50), preempted(b, 50), at=51)
    replay.see(running("other"), at=90)
    replay.flush()
    replay.restart(at=91)

    replay.lose(replace(preempted(b, 50), finished=80, version=3), at=92)

    assert together(replay) == sets("a b")


def test_a_preemption_is_announced_only_if_a_webhook_was_to_get_it_when_it_began() -> None:
    a, b, c, d = (running(name) for name in "abcd")
    replay = cluster(a, b, c, d)
    replay.see(preempted(a, 50), at=51)
    replay.fleet.disrupted.disruptions.announces = True

    replay.see(preempted(b, 50), at=52)  # of one that was not announced
    replay.see(preempted(c, 100), preempted(d, 100), at=101)
    replay.see(replace(preempted(c, 100), finished=120, version=3), at=121)

    announced = [each.victim_name for each in replay.fleet.disrupted.victims.known.values() if each.announced]
    assert announced == ["c", "d"]


@given(st.lists(st.integers(0, 10), min_size=1, max_size=4))
def test_pods_within_ten_seconds_are_one_preemption_in_any_order(seconds: list[int]) -> None:
    for order in permutations(range(len(seconds))):
        assert len(set(assigned((f"p{number}", seconds[number]) for number in order))) == 1


def test_a_preemption_that_is_closed_is_forgotten() -> None:
    complete_us = [0]
    parts = JobPreemptions(lambda: complete_us[0])
    a, b = (with_fields(DISRUPTION, victim_uid=uid, decided_us=0) for uid in "ab")
    parts.part_of(a, at_us=0, announces=False)
    complete_us[0] = CLOSED_US

    parts.advance()
    complete_us[0] = 0

    assert parts.part_of(b, at_us=0, announces=False).id == "b"


def test_a_first_pod_that_is_preempted_again_after_its_tier_has_changed_leaves_nothing_behind() -> None:
    complete_us = [0]
    parts = JobPreemptions(lambda: complete_us[0])
    a, b = (with_fields(DISRUPTION, victim_uid=uid, decided_us=0) for uid in "ab")
    for each in (a, with_fields(a, victim_tier="other")):
        parts.part_of(each, at_us=0, announces=False)
    complete_us[0] = CLOSED_US

    parts.advance()
    complete_us[0] = 0

    assert parts.part_of(b, at_us=0, announces=False).id == "b"


def assigned(decided: Iterable[tuple[str, int]]) -> list[str]:
    parts = JobPreemptions(lambda: 0)
    times = ((uid, second * US_PER_SECOND) for uid, second in decided)
    return [
        parts.part_of(with_fields(DISRUPTION, victim_uid=uid, decided_us=us), at_us=0, announces=False).id
        for uid, us in times
    ]


@pytest.mark.parametrize(
    ("spec", "exit_code", "after", "uses"),
    [
        ({}, 143, 2, True),
        ({}, 0, 20, True),
        ({}, 0, 1, False),
        ({"podReplacementPolicy": "Failed"}, 0, 20, False),
        ({"podReplacementPolicy": "Failed"}, 143, 20, True),
        (policy(rule("Ignore", **DISRUPTED)), 143, 20, False),
        (None, 143, 2, False),
    ],
    ids=["failed", "counted before it exits", "exits at once", "waits for success", "waits", "ignored", "not watched"],
)
def test_whether_a_preempted_pod_uses_up_a_retry_follows_from_its_job(
    spec: Json | None, exit_code: int, after: int, *, uses: bool
) -> None:
    a = running("a")
    replay = cluster(a)
    if spec is not None:
        replay.apply(Upserted(kind=Kind.JOBS, object=job(spec=spec), at_us=us(21), since_us=us(21)))

    replay.see(preempted(a, 50, exit_code=exit_code, after=after), at=80)

    [found] = replay.fleet.disrupted.victims.known.values()
    assert (found.uses_retry, found.exit_code) == (uses, exit_code)
