"""The contract of every ledger reader for sums of measured usage."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import MeasuredTime, Window
from gputally.model.units import GPU, US_PER_SECOND
from gputally.model.usage import AssignmentHour, AssignmentRecord
from tests.contract.records import ALWAYS, PRICE, pod, segment, step, us
from tests.contract.test_usage import ASSIGNMENT, HOUR, reported

GPU_SECOND = GPU * US_PER_SECOND
WHOLE = replace(ASSIGNMENT, resource="nvidia.com/gpu", ahead_us=0, pod_uid="a")
"""A container of pod `a` has a GPU, on a node whose clock is right."""


def hour(start: int, end: int, *, of: AssignmentRecord = WHOLE, since: int = 1000, **amounts: int) -> AssignmentHour:
    """Measured all the time from `start` to `end`; `used` and `burst` are seconds of it."""
    found = replace(
        HOUR,
        start_us=us(start // 3600 * 3600),
        from_us=us(start),
        to_us=us(end),
        measured=(end - start) * GPU_SECOND,
        used=amounts.get("used", 0) * GPU_SECOND,
        burst=amounts.get("burst", 0) * GPU_SECOND,
        energy=amounts.get("energy", 0),
    )
    return AssignmentHour(assignment=replace(of, key=of.key._replace(since_us=us(since))), hour=found)


def measured(reader: LedgerReader, window: Window, *by: str) -> dict[tuple[str, ...], tuple[int, int, int, int]]:
    """Measured, used and burst GPU-seconds and energy by labels."""
    return {
        each.labels: (each.measured // GPU_SECOND, each.used // GPU_SECOND, each.burst // GPU_SECOND, each.energy)
        for each in reader.measured(window, by)
    }


def test_usage_belongs_to_its_pod(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, 1100)), pod("b", segment(1000, 1100, tenant="blue", price=None))))
    other = replace(WHOLE, pod_uid="b")
    ledger.write(reported(hour(1000, 1100, used=60, burst=10, energy=7), hour(1000, 1050, of=other, since=1001)))

    assert reader.measured(ALWAYS, ("tenant",)) == [
        MeasuredTime(("blue",), None, 50 * GPU_SECOND, 0, 0, 0),
        MeasuredTime(("red",), PRICE, 100 * GPU_SECOND, 60 * GPU_SECOND, 10 * GPU_SECOND, 7),
    ]
    assert [each.idle // GPU_SECOND for each in reader.measured(ALWAYS, ("tenant",))] == [50, 50]


@pytest.mark.parametrize("uid", [None, "", "unknown"])
def test_usage_without_a_known_pod_is_left_out(ledger: Ledger, reader: LedgerReader, uid: str | None) -> None:
    ledger.write(step(pod("a", segment(1000, 1100))))
    ledger.write(reported(hour(1000, 1100, of=replace(WHOLE, pod_uid=uid))))

    assert reader.measured(ALWAYS, ()) == []


def test_an_hour_is_divided_where_its_pod_has_other_labels(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, 1025), segment(1025, 1030), segment(1030, None, tenant="blue"))))
    ledger.write(reported(hour(1010, 1110, used=50, energy=200)))

    assert measured(reader, ALWAYS, "tenant") == {("red",): (20, 10, 0, 40), ("blue",): (80, 40, 0, 160)}


def test_an_hour_is_divided_where_the_window_cuts_it(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, None))))
    ledger.write(reported(hour(1000, 1100, used=50)))

    assert measured(reader, Window(us(1020), us(1060))) == {(): (40, 20, 0, 0)}
    assert measured(reader, Window(us(1100), us(2000))) == {}


def test_an_hour_is_divided_into_periods(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, 1020), segment(1020, None, tenant="blue"))))
    ledger.write(reported(hour(1000, 1100, used=50)))

    found = reader.measured(Window(us(1000), us(1090)), ("tenant",), cuts=[us(1010), us(1050)])

    assert [(each.labels, each.period, each.measured // GPU_SECOND, each.used // GPU_SECOND) for each in found] == [
        (("blue",), 1, 30, 15),
        (("blue",), 2, 40, 20),
        (("red",), 0, 10, 5),
        (("red",), 1, 10, 5),
    ]


def test_the_clock_of_the_node_is_corrected(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, None))))
    ledger.write(reported(hour(1500, 1600, of=replace(WHOLE, ahead_us=us(500)))))

    assert measured(reader, Window(us(1000), us(1100))) == {(): (100, 0, 0, 0)}


def test_usage_belongs_to_the_resource_of_its_device(ledger: Ledger, reader: LedgerReader) -> None:
    slices = segment(1000, 1100, resource="nvidia.com/mig-1g.10gb", gpu_model="sliced")
    ledger.write(step(pod("a", segment(1000, 1100, gpu_model="whole"), slices)))
    of_slice = replace(WHOLE, resource="nvidia.com/mig-1g.10gb")
    ledger.write(
        reported(
            hour(1000, 1030),
            hour(1000, 1020, of=of_slice, since=1001),
            hour(1000, 1001, of=replace(WHOLE, resource="other"), since=1002),
        )
    )

    assert sum(each[0] for each in measured(reader, ALWAYS, "gpu_model").values()) == 51
    assert measured(reader, ALWAYS, "gpu_model")[("sliced",)][0] in (20, 21)


def test_the_state_is_no_dimension_of_usage(reader: LedgerReader) -> None:
    with pytest.raises(ValueError, match="state: not a dimension of a ledger; use namespace, "):
        reader.measured(ALWAYS, ("state",))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(cuts=st.lists(st.integers(900, 1200), min_size=1, max_size=5))
def test_consecutive_windows_add_up(ledger: Ledger, reader: LedgerReader, cuts: list[int]) -> None:
    ledger.write(step(pod("a", segment(1000, 1007), segment(1007, 1050, tier="high"), segment(1050, None, price=None))))
    ledger.write(reported(hour(1003, 1106, used=31, burst=3, energy=1_000_003)))

    bounds = [0, *sorted(us(cut) + 1 for cut in cuts), us(2000)]
    parts = [each for window in pairwise(bounds) for each in reader.measured(Window(*window), ())]
    found = reader.measured(Window(0, us(2000)), (), cuts=sorted({*bounds[1:-1]}))
    for field in ("measured", "used", "burst", "energy", "idle"):
        assert sum(getattr(each, field) for each in found) == sum(getattr(each, field) for each in parts)
        whole = sum(getattr(each, field) for each in reader.measured(ALWAYS, ()))
        assert sum(getattr(each, field) for each in parts) == whole > 0


@pytest.mark.parametrize("ahead", [-20_000, -3_601, 3_601, 20_000])
def test_usage_of_a_node_whose_clock_is_hours_off_is_in_the_window_of_its_time(
    ledger: Ledger, reader: LedgerReader, ahead: int
) -> None:
    ledger.write(step(pod("a", segment(40_000, 50_000))))
    skewed = replace(WHOLE, ahead_us=us(ahead))
    ledger.write(reported(hour(45_000 + ahead, 45_060 + ahead, of=skewed, used=60)))

    assert measured(reader, Window(us(45_000), us(45_060))) == {(): (60, 60, 0, 0)}
    assert measured(reader, Window(us(45_060), us(50_000))) == {}
