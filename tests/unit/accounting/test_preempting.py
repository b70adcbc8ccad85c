"""Preemptions under way: the victims that still have their GPUs."""

from dataclasses import replace

from gputally.accounting.disruptions.preemptions import Preempting
from gputally.model.kube.kinds import Kind
from gputally.model.units import GPU
from tests.core.manifests import PodForm, preempted_event, us
from tests.core.replay import Replay
from tests.unit.accounting.test_preemptions import DELETED, PREEMPTOR, RUNNING, cluster

STOPPED = replace(DELETED, finished=60, phase="Failed", version=4)


def under_way(replay: Replay, at: float) -> dict[tuple[str, str], Preempting]:
    return dict(replay.scrape(at).preempting)


def test_a_victim_counts_from_its_deletion_request_until_it_releases_its_gpus() -> None:
    replay = cluster(PREEMPTOR)
    assert under_way(replay, 50) == {}
    replay.see(DELETED, at=51)
    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=51)

    assert under_way(replay, 55) == {("low", "high"): Preempting(pods=1, quantity=2 * GPU, oldest_us=us(50))}

    replay.see(STOPPED, at=61)
    assert under_way(replay, 62) == {}


def test_until_an_event_names_the_preemptor_it_is_unknown() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    assert under_way(replay, 52).keys() == {("low", "unknown")}

    replay.see_event(preempted_event(RUNNING, by=PREEMPTOR), at=53)

    assert under_way(replay, 54).keys() == {("low", "high")}


def test_victims_of_two_tiers_add_up_with_the_first_request() -> None:
    replay = cluster(PREEMPTOR)
    later = PodForm(name="later", uid="later", tier="low", node="n1", scheduled=10, started=11, gpus=1)
    replay.see(replace(later, marked=57, deleted=57, version=3), at=58)
    replay.see(DELETED, at=58)

    assert under_way(replay, 59) == {("low", "unknown"): Preempting(pods=2, quantity=3 * GPU, oldest_us=us(50))}


def test_a_victim_that_is_forcibly_deleted_has_released_its_gpus() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    replay.lose(DELETED, at=52)

    assert under_way(replay, 53) == {}


def test_a_restarted_aggregator_still_knows_them_and_notices_that_one_vanished() -> None:
    replay = cluster(PREEMPTOR)
    replay.see(DELETED, at=51)
    replay.scrape(52)
    replay.restart(at=55)
    assert under_way(replay, 56).keys() == {("low", "unknown")}

    replay.relist(Kind.PODS, at=57, since=55)

    assert under_way(replay, 58) == {}
