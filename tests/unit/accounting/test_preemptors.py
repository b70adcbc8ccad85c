"""Preemptors that no Event names, that request no GPU, or that the priorities do not permit."""

from dataclasses import replace

import pytest

from gputally.accounting.totals.total import Total
from tests.core.manifests import PodForm, as_pod, preempted_event
from tests.core.replay import Replay
from tests.unit.accounting.test_preemptions import (
    BY_UID,
    DELETED,
    PREEMPTOR,
    RUNNING,
    VICTIM_UID,
    by_group,
    cluster,
    counted,
)

OTHER_UID = "33333333-3333-3333-3333-333333333333"


def nominated(by: PodForm, *, at: float, replay: Replay) -> None:
    """The scheduler makes room on the victim's node for `by`."""
    manifest = by.manifest()
    manifest["status"]["nominatedNodeName"] = "n1"
    replay.see_pod(as_pod(manifest), at=at)


def test_without_its_event_the_only_pod_nominated_to_the_node_was_the_preemptor() -> None:
    replay = cluster(PREEMPTOR)
    nominated(PREEMPTOR, at=50, replay=replay)
    replay.see(DELETED, at=51)
    assert counted(replay, 100) == {}

    assert counted(replay, 120) == {("low", "high"): 1}
    preemptor = replay.preemption(VICTIM_UID).preemptor
    assert preemptor is not None
    assert (preemptor.uid, preemptor.is_inferred) == (BY_UID, True)


@pytest.mark.parametrize(
    ("others", "at"),
    [
        ((PREEMPTOR, replace(PREEMPTOR, name="second", uid="second")), 50),
        ((PREEMPTOR,), 30),
        ((PREEMPTOR,), 115),
        ((replace(PREEMPTOR, tier="low", priority=0),), 50),
    ],
    ids=["two are nominated", "long before", "long after", "not of a higher priority"],
)
def test_a_doubtful_nomination_names_no_preemptor(others: tuple[PodForm, ...], at: int) -> None:
    replay = cluster()
    for other in others:
        nominated(other, at=at, replay=replay)
    replay.see(DELETED, at=51)

    assert counted(replay, 120) == {("low", "unknown"): 1}


def test_a_late_event_corrects_an_inferred_preemptor_once_also_after_a_restart() -> None:
    true = replace(PREEMPTOR, name="true", uid="33333333-3333-3333-3333-333333333333", tier="top")
    replay = cluster(PREEMPTOR, true)
    nominated(PREEMPTOR, at=50, replay=replay)
    replay.see(DELETED, at=51)
    assert counted(replay, 120) == {("low", "high"): 1}
    replay.restart(at=130)
    assert counted(replay, 140) == {("low", "high"): 1}

    replay.see_event(preempted_event(RUNNING, by=true), at=150)

    assert counted(replay, 160) == {("low", "top"): 1}
    assert replay.true(Total.TENANT_PREEMPTIONS, 160) == {("low", "ml"): 1}


def test_a_preemptor_without_gpus_has_its_tier() -> None:
    replay = cluster()
    nominated(replace(PREEMPTOR, gpus=0, tier="system"), at=50, replay=replay)
    replay.see(DELETED, at=51)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=51)

    assert counted(replay, 52) == {("low", "system"): 1}


@pytest.mark.parametrize(
    ("by", "forbidden"),
    [
        (PREEMPTOR, 0),
        (replace(PREEMPTOR, priority=0), 1),
        (replace(PREEMPTOR, preemption_policy="Never"), 1),
        (replace(PREEMPTOR, preemption_policy="PreemptLowerPriority"), 0),
    ],
)
def test_a_preemption_that_the_priorities_do_not_permit_is_counted_once(by: PodForm, forbidden: int) -> None:
    replay = cluster(by)
    replay.see(DELETED, at=51)
    replay.see_event(preempted_event(RUNNING, by=by), at=51)
    replay.scrape(60)
    replay.restart(at=70)
    replay.see(replace(DELETED, version=4), at=71)

    assert counted(replay, 80) == {("low", "high"): 1}
    assert sum(replay.true(Total.FORBIDDEN, 80).values()) == forbidden


def test_a_preemption_by_an_unknown_pod_is_not_judged() -> None:
    replay = cluster()
    replay.see(DELETED, at=51)

    assert counted(replay, 120) == {("low", "unknown"): 1}
    assert replay.true(Total.FORBIDDEN, 120) == {}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_events_for_one_victim_the_first_one_names_the_preemptor(order: tuple[int, int]) -> None:
    second = replace(PREEMPTOR, name="second", uid="44444444-4444-4444-4444-444444444444", tier="top")
    times = ("2026-07-01T00:00:50.895302Z", "2026-07-01T00:00:50.905047Z")
    events = [
        preempted_event(RUNNING, by=by) | {"eventTime": time}
        for by, time in zip((PREEMPTOR, second), times, strict=True)
    ]
    replay = cluster(PREEMPTOR, second)
    for place in order:
        replay.see_event(events[place], at=51)
    replay.see(DELETED, at=51)

    assert counted(replay, 52) == {("low", "high"): 1}


@pytest.mark.parametrize("related", [True, False])
def test_a_late_event_that_names_a_group_or_pod_nobody_saw_replaces_an_inferred_preemptor(*, related: bool) -> None:
    replay = cluster(PREEMPTOR)
    nominated(PREEMPTOR, at=50, replay=replay)
    replay.see(DELETED, at=51)
    assert counted(replay, 120) == {("low", "high"): 1}

    event = by_group(related=True) if related else preempted_event(RUNNING, by=replace(PREEMPTOR, uid=OTHER_UID))
    replay.see_event(event, at=150)

    assert counted(replay, 160) == {("low", "unknown"): 1}
    preemptor = replay.preemption(VICTIM_UID).preemptor
    assert preemptor
    assert (preemptor.kind, preemptor.is_inferred) == ("PodGroup" if related else "", False)
