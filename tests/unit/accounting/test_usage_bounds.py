"""What an agent tells counts as far as its GPUs can have done it, and for its own node alone."""

from dataclasses import replace as other
from typing import Any

import pytest
from msgspec.structs import replace

from gputally.accounting.totals.total import Total
from gputally.model.units import GPU, US_PER_HOUR
from gputally.model.usage import Fault
from tests.core.manifests import us
from tests.core.measured import POD, complete, started, tell
from tests.core.one_pod import NODE, RUNNING
from tests.core.replay import Replay
from tests.core.usage import assignment, gpu, hour

HOUR = hour(10, 20, measured=10, used=6, burst=1, joules=4000)


@pytest.fixture
def replay() -> Replay:
    """One pod, running since 12 with one GPU of n1."""
    return started(Replay())


def faults(replay: Replay) -> dict[Fault, int]:
    return {fault: count for fault, count in replay.fleet.usage.pending.faults.items() if count}


def test_four_million_gpu_seconds_in_ten_seconds_are_left_out_and_what_can_be_counts_later(replay: Replay) -> None:
    tell(replay, assignment(hour(10, 20, measured=4_000_000), since=12), at=20)
    assert replay.gpu_seconds(20, Total.MEASURED) == {}
    assert faults(replay) == {Fault.IMPOSSIBLE: 1}

    tell(replay, assignment(hour(10, 30, measured=20), since=12), at=30)
    assert replay.gpu_seconds(30, Total.MEASURED) == {POD: 20}


@pytest.mark.parametrize(
    "more",
    [
        {"measured": 10 * GPU * 1_000_000 + 1},
        {"used": 10 * GPU * 1_000_000 + 1, "burst": GPU * 1_000_000},
        {"burst": 0, "used": 10 * GPU * 1_000_000, "measured": 9 * GPU * 1_000_000},
        {"energy": 9_000_002_100_000},
        {"memory_us": 10_000_001},
        {"memory": 1, "memory_us": 0},
        {"to_us": us(20) + 1},
        {"start_us": us(1) - US_PER_HOUR, "from_us": us(1), "to_us": us(1)},
    ],
)
def test_no_device_does_more_than_all_of_a_gpu_in_its_time(replay: Replay, more: dict[str, Any]) -> None:
    tell(replay, assignment(replace(HOUR, **more), since=12), at=20)

    assert replay.gpu_seconds(20, Total.MEASURED) == {}
    assert faults(replay) == {Fault.IMPOSSIBLE: 1}


def test_one_hour_that_cannot_be_spoils_no_other(replay: Replay) -> None:
    wrong = assignment(replace(HOUR, energy=1 << 60), since=12, device="GPU-1", gpu="GPU-1")
    tell(replay, wrong, assignment(HOUR, since=12), at=20)

    assert replay.gpu_seconds(20, Total.MEASURED) == {POD: 10}


@pytest.mark.parametrize(
    "more", [{"share": GPU + 1}, {"since": 21, "seen": 20}, {"seen": 21}, {"until": 21, "seen": 20}]
)
def test_a_holder_to_come_or_of_more_than_a_gpu_is_left_out(replay: Replay, more: dict[str, Any]) -> None:
    tell(replay, assignment(HOUR, **{"since": 12} | more), at=20)

    assert replay.gpu_seconds(20, Total.MEASURED) == {}
    assert faults(replay) == {Fault.IMPOSSIBLE: 1}


def test_a_holder_that_cannot_be_for_once_counts_no_hour_twice(replay: Replay) -> None:
    for share in (GPU, GPU + 1, GPU):
        tell(replay, assignment(HOUR, since=12, share=share), at=20)

    assert replay.gpu_seconds(20, Total.MEASURED) == {POD: 10}


def test_holders_together_do_no_more_than_their_gpu(replay: Replay) -> None:
    tell(replay, assignment(HOUR, since=12), assignment(hour(10, 20, measured=10), since=12, device="GPU-0/2"), at=15)
    tell(replay, assignment(hour(5, 20, measured=15), since=5), assignment(HOUR, since=12, device="GPU-0/2"), at=20)

    assert replay.gpu_seconds(20, Total.MEASURED) == {POD: 15}
    assert faults(replay)[Fault.EXCEEDED] == 1


def test_what_nobody_held_is_no_more_than_the_gpu_had_left(replay: Replay) -> None:
    tell(replay, assignment(HOUR, since=12), at=20, gpus=(gpu(unattributed=15, watermark=20),))

    assert replay.gpu_seconds(20, Total.UNATTRIBUTED) == {}
    assert faults(replay) == {Fault.EXCEEDED: 1}


def test_the_energy_of_a_gpu_that_was_lost_for_half_a_day_is_nobodys_all_the_same(replay: Replay) -> None:
    tell(replay, at=20, gpus=(gpu(joules=700 * 43_200, watermark=20),))

    assert replay.true(Total.UNALLOCATED_ENERGY, 20) == {("A100", "none"): 700 * 43_200_000}


def test_agents_that_begin_anew_all_the_time_add_no_more_than_their_gpus_can_have_done() -> None:
    replay = Replay(opened=-1000 * 3600)
    replay.see(other(NODE, gpus=1), RUNNING, at=13)
    complete(replay, at=20)
    past = [replace(HOUR, start_us=us(0) - n * US_PER_HOUR, from_us=us(0) - n * US_PER_HOUR) for n in range(1, 11)]
    full = [replace(each, to_us=each.from_us + US_PER_HOUR, measured=GPU * US_PER_HOUR) for each in past]
    for life in range(100):
        tell(replay, assignment(*full, since=12), at=20 + life / 10, epoch=f"life {life}")

    assert sum(replay.gpu_seconds(30, Total.MEASURED).values()) == 73 * 3600
    assert faults(replay) == {Fault.EXCEEDED: 100 * 10 - 73}


def test_of_pods_on_other_nodes_an_agent_has_nothing_to_tell(replay: Replay) -> None:
    replay.see(other(NODE, name="n2"), other(RUNNING, name="b", node="n2", tier="silver"), at=21)
    complete(replay, at=40)
    tell(replay, assignment(HOUR, since=12, pod="b", pod_uid="uid-b"), at=40)

    assert replay.gpu_seconds(40, Total.MEASURED) == {("unknown", "ml", "A100"): 10}


def test_a_namespace_that_an_agent_invents_is_no_tenant(replay: Replay) -> None:
    complete(replay, at=40)
    tell(
        replay, *(assignment(hour(n, n + 1, measured=1), since=n, pod="x", namespace=f"x{n}") for n in range(20)), at=40
    )

    assert replay.gpu_seconds(40, Total.MEASURED) == {("unknown", "unassigned", "A100"): 20}


def test_what_a_report_leaves_out_as_unchanged_takes_its_part_of_the_gpu(replay: Replay) -> None:
    tell(replay, assignment(hour(0, 20, measured=20), since=0), at=20, revision=2)
    other_part = assignment(hour(0, 20, measured=1), since=1, device="GPU-0/2")
    tell(replay, other_part, at=20, since=2, revision=3)
    tell(replay, at=20, since=2, revision=3, gpus=(gpu(unattributed=21, watermark=20),))

    assert replay.gpu_seconds(20, Total.MEASURED) == {POD: 20}
    assert faults(replay) == {Fault.EXCEEDED: 2}
