"""What agents tell becomes counters, once, by the terms of the pod it belongs to."""

from dataclasses import replace

import pytest

from gputally.accounting.totals.total import Total
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Upserted
from gputally.model.usage import Fault
from tests.core.manifests import as_pod, us
from tests.core.measured import POD, STRANGER, complete, started, tell
from tests.core.one_pod import RUNNING
from tests.core.replay import Replay
from tests.core.usage import assignment, gpu, hour, usage
from tests.unit.accounting.test_agents import agent
from tests.unit.accounting.test_fleet import book


@pytest.fixture
def replay() -> Replay:
    """One pod, running since 12 with one GPU of n1."""
    return started(Replay())


def test_what_a_pod_did_is_counted_by_its_tier_tenant_and_model(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8, used=6, burst=1, joules=2400), since=12), at=20)

    assert replay.gpu_seconds(20, Total.MEASURED) == {POD: 8}
    assert replay.gpu_seconds(20, Total.USED) == {POD: 6}
    assert replay.gpu_seconds(20, Total.BURST) == {POD: 1}
    assert replay.true(Total.ENERGY, 20) == {POD: 2_400_000}
    assert replay.true(Total.UNMATCHED, 20) == {}


def test_of_an_hour_told_again_only_the_difference_counts(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8, used=6), since=12), at=20)
    tell(replay, assignment(hour(12, 20, measured=8, used=6), since=12), at=21)
    tell(replay, assignment(hour(12, 30, measured=18, used=7), since=12), at=30)

    assert replay.gpu_seconds(30, Total.MEASURED) == {POD: 18}
    assert replay.gpu_seconds(30, Total.USED) == {POD: 7}


def test_an_agent_that_began_anew_adds_to_what_it_told_before(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8), since=12), at=20)
    complete(replay, at=30)
    tell(replay, assignment(hour(22, 30, measured=8), since=22), at=30, epoch="e2")

    assert replay.gpu_seconds(30, Total.MEASURED) == {POD: 16}
    assert replay.scrape(31).agent_restarts == 1


def test_what_was_not_decided_when_its_agent_began_anew_is_counted_all_the_same(replay: Replay) -> None:
    tell(replay, assignment(hour(21, 25, measured=4), since=21), at=25)
    tell(replay, at=30, epoch="e2")
    assert replay.gpu_seconds(30, Total.MEASURED) == {}

    complete(replay, at=31)
    tell(replay, at=40, epoch="e2")
    tell(replay, at=50, epoch="e2")
    replay.flush()
    assert replay.gpu_seconds(50, Total.MEASURED) == {POD: 4}
    assert replay.memory.saved().assignment_usage == ()


def test_an_hour_of_which_less_is_told_is_left_out_and_counted(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8, used=6), since=12), at=20)
    tell(replay, assignment(hour(12, 30, measured=18, used=5), since=12), at=30)

    assert replay.gpu_seconds(30, Total.MEASURED) == {POD: 8}
    assert replay.scrape(31).usage_faults[Fault.FELL] == 1

    tell(replay, assignment(hour(12, 40, measured=28, used=6), since=12), at=40)
    assert replay.gpu_seconds(40, Total.MEASURED) == {POD: 28}


def test_idle_is_what_was_measured_and_not_used_and_costs_what_the_pod_pays() -> None:
    replay = started(Replay(book=book((0, "3600"))))
    tell(replay, assignment(hour(12, 20, measured=8, used=6, burst=1), since=12), at=20)

    assert replay.money(20, Total.IDLE_COST) == {(*POD, "EUR"): 3}


def test_a_price_that_changes_divides_what_was_measured_by_time() -> None:
    replay = started(Replay(book=book((0, "3600"), (20, "7200"))))
    replay.fleet.advance(us(25))
    tell(replay, assignment(hour(16, 24, measured=8), since=16), at=25)

    assert replay.money(25, Total.IDLE_COST) == {(*POD, "EUR"): 4 + 2 * 4}


def test_what_was_measured_before_the_books_were_opened_is_left_out() -> None:
    replay = started(Replay(opened=8))
    tell(replay, assignment(hour(0, 16, measured=16, joules=32), since=0), at=20, gpus=(gpu(joules=20, watermark=10),))

    assert replay.gpu_seconds(20, Total.MEASURED) == {POD: 8}
    assert replay.true(Total.ENERGY, 20) == {POD: 16_000}
    assert replay.true(Total.UNALLOCATED_ENERGY, 20) == {("A100", "none"): 4_000}


def test_of_the_hour_in_which_the_books_were_opened_what_is_told_later_counts_whole() -> None:
    replay = started(Replay(opened=8))
    tell(replay, at=20, gpus=(gpu(joules=20, watermark=16),))
    tell(replay, at=30, gpus=(gpu(joules=30, watermark=30),))

    assert replay.true(Total.UNALLOCATED_ENERGY, 30) == {("A100", "none"): 20_000}


def test_nothing_is_counted_before_it_is_sure_whose_it_is(replay: Replay) -> None:
    tell(replay, assignment(hour(21, 25, measured=4), since=21, pod="b"), at=25)
    assert replay.gpu_seconds(25, Total.MEASURED) == {}

    replay.see(replace(RUNNING, name="b", tier="low", scheduled=20, started=21), at=26)
    tell(replay, assignment(hour(21, 27, measured=6), since=21, pod="b"), at=27)
    assert replay.gpu_seconds(27, Total.MEASURED) == {("low", "ml", "A100"): 6}


def test_a_pod_that_was_told_with_it_is_known(replay: Replay) -> None:
    """Pods may wait to be accounted with others."""
    bound = replace(RUNNING, name="b", tier="low", scheduled=20, started=21)
    replay.fleet.observe(Upserted(kind=Kind.PODS, object=as_pod(bound), at_us=us(26), since_us=us(26)))
    replay.fleet.observe(usage(assignment(hour(21, 27, measured=6), since=21, pod="b"), at=27))

    assert replay.gpu_seconds(27, Total.MEASURED) == {("low", "ml", "A100"): 6}


def test_what_no_pod_did_that_the_api_tells_of_has_the_tier_unknown(replay: Replay) -> None:
    tell(replay, assignment(hour(13, 15, measured=2, used=1), since=13, until=15, pod="ghost"), at=20)
    complete(replay, at=21)
    tell(replay, assignment(hour(13, 15, measured=2, used=1), since=13, until=15, pod="ghost"), at=30)

    assert replay.gpu_seconds(30, Total.MEASURED) == {STRANGER: 2}
    assert replay.gpu_seconds(30, Total.UNMATCHED) == {(): 2}


def test_a_static_pod_whose_uid_the_api_does_not_know_is_found_by_its_name(replay: Replay) -> None:
    complete(replay, at=13)
    tell(replay, assignment(hour(12, 20, measured=8), since=12, pod_uid="a hash of its manifest"), at=20)

    assert replay.gpu_seconds(20, Total.MEASURED) == {POD: 8}


def test_what_a_pod_did_is_counted_after_it_has_gone(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8), since=12), at=20)
    replay.lose(RUNNING, at=30)
    tell(replay, assignment(hour(12, 29, measured=17), since=12, until=29), at=31)
    fresh = assignment(hour(28, 29, measured=1), since=28, until=29, device="GPU-1")
    complete(replay, at=42)
    tell(replay, assignment(hour(12, 29, measured=17), since=12, until=29), fresh, at=45)

    assert replay.gpu_seconds(45, Total.MEASURED) == {POD: 18}


def test_what_a_pod_did_that_had_gone_before_its_agent_was_first_heard_of_is_its_own(replay: Replay) -> None:
    replay.apply(Upserted(kind=Kind.PODS, object=agent(), at_us=us(15), since_us=us(15)))
    replay.lose(RUNNING, at=30)
    complete(replay, at=42)
    tell(replay, assignment(hour(12, 29, measured=17), since=12, until=29), at=45)

    assert replay.gpu_seconds(45, Total.MEASURED) == {POD: 17}


def test_on_which_gpu_a_device_is_may_be_found_out_later(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8), since=12, gpu=""), at=20)
    tell(replay, assignment(hour(12, 30, measured=18), since=12), at=30)
    replay.flush()

    assert [row.assignment.gpu for row in replay.memory.assignment_usage.values()] == ["GPU-0"]


def test_the_nodes_clock_may_differ_from_ours(replay: Replay) -> None:
    """Its 1012 is our 12."""
    tell(replay, assignment(hour(1012, 1020, measured=8), since=1012), at=20, ahead=1000)

    assert replay.gpu_seconds(20, Total.MEASURED) == {POD: 8}


def test_use_and_energy_that_nobody_held_count_by_model_and_pool(replay: Replay) -> None:
    tell(replay, at=20, gpus=(gpu(unattributed=2, joules=100, watermark=20),))
    tell(replay, at=30, gpus=(gpu(unattributed=3, joules=150, watermark=30),))

    assert replay.gpu_seconds(30, Total.UNATTRIBUTED) == {("A100", "none"): 3}
    assert replay.true(Total.UNALLOCATED_ENERGY, 30) == {("A100", "none"): 150_000}


def test_less_energy_of_a_gpu_than_before_is_left_out(replay: Replay) -> None:
    tell(replay, at=20, gpus=(gpu(joules=100, watermark=20),))
    tell(replay, at=30, gpus=(gpu(joules=50, watermark=30),))

    assert replay.true(Total.UNALLOCATED_ENERGY, 30) == {("A100", "none"): 100_000}
    assert replay.scrape(31).usage_faults[Fault.FELL] == 1


def test_series_of_a_measured_pod_are_there_from_the_start() -> None:
    replay = started(Replay(book=book((0, "1"))))
    tell(replay, assignment(since=12), at=20)
    replay.scrape(21)

    totals = replay.scrape(22).totals
    for total in (Total.MEASURED, Total.USED, Total.BURST, Total.ENERGY):
        assert [(point.labels, point.value) for point in totals[total]] == [(POD, 0)]
    assert [point.labels for point in totals[Total.IDLE_COST]] == [(*POD, "EUR")]
    assert [point.labels for point in totals[Total.UNATTRIBUTED]] == [("A100", "none")]


def test_an_agent_silent_for_a_week_is_forgotten(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8), since=12), at=20)
    replay.fleet.advance(us(8 * 86400))
    replay.flush()

    assert replay.memory.saved().assignment_usage == ()


def test_a_pod_without_its_own_resource_name_pays_for_what_it_has(replay: Replay) -> None:
    tell(replay, assignment(hour(12, 20, measured=8), since=12, resource="other.com/gpu"), at=20)

    assert replay.gpu_seconds(20, Total.MEASURED) == {POD: 8}


def test_usage_of_a_node_that_is_not_known_has_no_model() -> None:
    replay = Replay()
    complete(replay, at=40)
    tell(replay, assignment(hour(12, 20, measured=8), since=12), at=40, gpus=(gpu(joules=1, watermark=40),))

    assert replay.gpu_seconds(40, Total.MEASURED) == {("unknown", "ml", "unknown"): 8}
    assert replay.true(Total.UNALLOCATED_ENERGY, 40) == {("unknown", "none"): 1000}
