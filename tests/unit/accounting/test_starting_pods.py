"""Pods that hold GPUs of which no container has run, and since when, until they start or end."""

from dataclasses import replace

import pytest

from gputally.accounting.fleet.snapshot import publish
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay

STUCK = PodForm(name="stuck", tier="web", node="n", scheduled=10, accepted=11)


@pytest.fixture
def replay() -> Replay:
    found = Replay()
    found.see(NodeForm(name="n", gpus=8), at=0)
    return found


def starting(replay: Replay, at: float) -> dict[tuple[str, str], int]:
    return dict(replay.scrape(at).starting)


def test_the_pod_that_was_bound_first_counts_by_tier_and_tenant(replay: Replay) -> None:
    replay.see(replace(STUCK, name="late", scheduled=20, accepted=20), at=20)
    replay.see(STUCK, PodForm(name="other", tier="batch", node="n", scheduled=15, accepted=15), at=21)

    assert starting(replay, 30) == {("web", "ml"): us(10), ("batch", "ml"): us(15)}


def test_a_pod_that_starts_ends_or_is_deleted_no_longer_counts(replay: Replay) -> None:
    later = replace(STUCK, version=2)
    ways = (replace(later, started=40), replace(later, deleted=40), replace(later, phase="Failed", reason="Evicted"))
    for index, changed in enumerate(ways):
        name = f"pod-{index}"
        replay.see(replace(STUCK, name=name), at=30)
        assert starting(replay, 35) == {("web", "ml"): us(10)}
        replay.see(replace(changed, name=name), at=40)
        assert starting(replay, 45) == {}
    replay.see(STUCK, at=50)
    replay.lose(STUCK, at=60)
    assert starting(replay, 70) == {}


def test_a_pending_pod_is_not_starting(replay: Replay) -> None:
    replay.see(PodForm(name="pending", tier="web"), at=1)

    assert starting(replay, 2) == {}


def test_it_counts_after_a_restart_of_the_aggregator(replay: Replay) -> None:
    replay.see(STUCK, at=10)
    replay.scrape(20)
    replay.restart()

    assert starting(replay, 30) == {("web", "ml"): us(10)}


def test_limits_are_shown_of_every_tier(replay: Replay) -> None:
    replay.see(PodForm(name="pending", tier="web"), at=1)

    assert publish(replay.fleet, now_us=us(2), ledger={}).serving.time_limits["web"] == (
        21_600_000_000,
        1_800_000_000,
    )
