"""All energy is somebody's or nobody's, and a counter that begins anew takes nothing back."""

from gputally.accounting.devices.energy import Claim, Meter, spent
from gputally.accounting.devices.holding import Holding
from tests.unit.accounting.devices.readings import held

A, B = (Holding(held=held(pod), since_us=0, seen_us=0, after_us=None) for pod in "ab")


def claim(holding: Holding | None, amount: int) -> Claim:
    return Claim(holding, 0, 1, amount)


def test_a_meter_begins_at_its_first_value() -> None:
    meter = Meter()

    assert [meter.delta(value) for value in (None, 500, 520, None, 600, 600)] == [0, 0, 20, 0, 80, 0]
    assert meter.resets == 0


def test_a_meter_that_fell_was_reset_and_tells_what_was_since() -> None:
    meter = Meter()

    assert [meter.delta(value) for value in (500, 30, 40, 0)] == [0, 30, 10, 0]
    assert meter.resets == 2


def test_energy_goes_to_those_who_used_the_gpu_and_nobody_is_one_of_them() -> None:
    used = [claim(A, 3), claim(B, 0), claim(None, 1)]

    assert [energy for _, energy in spent(10, used, [claim(B, 1)])] == [8, 0, 2]


def test_energy_of_an_idle_gpu_goes_to_those_who_held_it() -> None:
    held_by = [claim(A, 1), claim(B, 1), claim(None, 1)]

    assert [energy for _, energy in spent(100, [claim(A, 0)], held_by)] == [34, 33, 33]


def test_energy_of_no_time_is_left_to_the_caller() -> None:
    assert list(spent(10, [], [])) == []
