"""All energy is somebody's or nobody's, and a counter that begins anew takes nothing back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.metering.energy import EnergyMeter, GpuTimeEntry, split_energy
from gputally.metering.sums import AssignmentMeter
from gputally.model.devices import MOST_POWER
from gputally.model.units import US_PER_SECOND
from tests.unit.metering.readings import held

A, B = (AssignmentMeter(allocation=held(pod), since_us=0, seen_us=0, after_us=None) for pod in "ab")


def entry(assignment: AssignmentMeter | None, amount: int) -> GpuTimeEntry:
    return GpuTimeEntry(assignment, 0, 1, amount)


LIMIT = 700_000
"""mW, so that 1,400,000 mJ in a second are the most that is believed."""


def deltas(*readings: tuple[float, int | None], limit: int | None = LIMIT) -> tuple[list[int], EnergyMeter]:
    """Of readings at so many seconds."""
    meter = EnergyMeter()
    return [meter.delta(value, at_us=round(at * US_PER_SECOND), limit=limit) for at, value in readings], meter


def test_a_meter_begins_at_its_first_value() -> None:
    found, meter = deltas((0, None), (1, 500), (2, 520), (3, None), (4, 600), (5, 600))

    assert found == [0, 0, 20, 0, 80, 0]
    assert (meter.resets, meter.faults) == (0, 0)


def test_a_meter_that_fell_to_what_can_have_been_since_was_reset() -> None:
    found, meter = deltas((0, 10**9), (1, 300_000), (2, 400_000))

    assert found == [0, 300_000, 100_000]
    assert (meter.resets, meter.faults) == (1, 0)


def test_a_meter_that_is_a_little_lower_once_counts_on_from_where_it_was() -> None:
    """It was taken for a reset, which billed 9,000,002,100 J instead of 2,100."""
    full = 9 * 10**12
    found, meter = deltas((0, full), (1, full - 10), (2, full - 5), (3, full + 2_100_000))

    assert found == [0, 0, 0, 2_100_000]
    assert (meter.resets, meter.faults) == (0, 0)


def test_a_meter_that_is_lower_for_good_by_more_counts_on_from_there() -> None:
    found, meter = deltas((0, 10**12), (1, 10**11), (2, 10**11 + 700_000))

    assert found == [0, 0, 700_000]
    assert (meter.resets, meter.faults) == (0, 1)


def test_a_jump_counts_for_the_most_that_can_have_been_spent() -> None:
    found, meter = deltas((0, 10**9), (3, 10**15), (4, 10**15 + 700_000))

    assert found == [0, 4 * 2 * LIMIT, 700_000]
    assert meter.faults == 1


@pytest.mark.parametrize(
    ("limit", "most"), [(None, MOST_POWER), (0, MOST_POWER), (10**9, MOST_POWER), (LIMIT, 2 * LIMIT)]
)
def test_where_no_power_limit_is_known_it_is_that_of_the_hungriest_gpus(limit: int | None, most: int) -> None:
    found, meter = deltas((0, 0), (9, 10 * most), (10, 12 * most + 1), limit=limit)

    assert found == [0, 10 * most, 2 * most]
    assert meter.faults == 1


def test_a_limit_that_was_lowered_says_nothing_of_before() -> None:
    meter = EnergyMeter()
    meter.delta(0, at_us=0, limit=LIMIT)

    assert meter.delta(600_000, at_us=US_PER_SECOND, limit=100_000) == 600_000


@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.integers(0, LIMIT), st.sampled_from("......jjr")), min_size=1, max_size=80
    )
)
def test_whatever_a_meter_does_no_more_is_counted_than_was_spent(steps: list[tuple[int, int, str]]) -> None:
    """It is read low by up to a moment's energy, and reset, as drivers do."""
    meter, at, spent_in_all, since_reset, resets = EnergyMeter(), 0, 0, 10**9, 0
    counted = meter.delta(since_reset, at_us=0, limit=LIMIT)
    for seconds, power, event in steps:
        at += seconds
        energy = seconds * power
        spent_in_all += energy
        if event == "r":
            resets, since_reset = resets + 1, energy // 2
        else:
            since_reset += energy
        low = min(since_reset, LIMIT) if event == "j" else 0
        counted += meter.delta(since_reset - low, at_us=at * US_PER_SECOND, limit=LIMIT)

    assert counted <= spent_in_all
    if not resets:
        counted += meter.delta(since_reset, at_us=(at + 1) * US_PER_SECOND, limit=LIMIT)
        assert counted == spent_in_all


def test_energy_goes_to_those_who_used_the_gpu_and_nobody_is_one_of_them() -> None:
    used = [entry(A, 3), entry(B, 0), entry(None, 1)]

    assert [energy for _, energy in split_energy(10, used, [entry(B, 1)])] == [8, 0, 2]


def test_energy_of_an_idle_gpu_goes_to_those_who_held_it() -> None:
    held_by = [entry(A, 1), entry(B, 1), entry(None, 1)]

    assert [energy for _, energy in split_energy(100, [entry(A, 0)], held_by)] == [34, 33, 33]


def test_energy_of_no_time_is_left_to_the_caller() -> None:
    assert list(split_energy(10, [], [])) == []
