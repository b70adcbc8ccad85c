"""The parts of a waterfall, from what nodes offered, what was allocated and what agents measured, on all back-ends."""

from fractions import Fraction
from typing import Any

import pytest
from msgspec.structs import replace

from gputally.accounting.changes import Changes
from gputally.errors import DetailRolledUp
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import Window
from gputally.model.allocation import End, Result, State
from gputally.model.lost_work import CheckpointSource, LostPod
from gputally.model.units import COST_UNIT, GPU, GPU_HOUR, PICO, US_PER_DAY
from gputally.reports.choices import Filter
from gputally.reports.query import ReportQuery
from gputally.reports.waterfall import read_waterfall_parts
from tests.contract.records import ALWAYS, LOST_WORK, PRICE, pod, segment, step, us
from tests.contract.test_measured_time import WHOLE, hour
from tests.contract.test_unallocated import HOUR, THREE, TWO, node, priced
from tests.contract.test_unallocated import WHOLE as OFFERED
from tests.contract.test_usage import reported

DEAR = replace(PRICE, key="book/dear", per_gpu_hour=5, rate=5 * PICO)
Found = dict[tuple[str, str, str], tuple[Fraction | int, Fraction | int]]


def parts(reader: LedgerReader, start: int, end: int, **where: str) -> tuple[Found, dict[str, Fraction]]:
    """GPU-hours and cost between two hours, by tenant, step and cause; and the bill by tenant."""
    filters = tuple(Filter(column, (glob,)) for column, glob in where.items())
    query = ReportQuery(window=Window(us(start * HOUR), us(end * HOUR)), by=("tenant",), filters=filters)
    found, billed = read_waterfall_parts(reader, query)
    sums: Found = {}
    for each in found:
        key = (each.labels or ("-",))[0], each.step, each.cause
        hours, cost = sums.get(key, (Fraction(), Fraction()))
        more = each.price.cost(each.gpu_time) if each.price else 0
        sums[key] = hours + Fraction(each.gpu_time, GPU_HOUR), cost + Fraction(more, COST_UNIT)
    return sums, {each.labels[0]: Fraction(each.cost, COST_UNIT) for each in billed}


def fill(ledger: Ledger, *, dearer: int = 7) -> None:
    """8 GPUs for 5 hours, from hour 7 on at 3 instead of 2: red has 2 and succeeds, blue has 1 and fails."""
    ledger.write(priced((1, TWO), (dearer, THREE)))
    ledger.write(node("node-1", (5, OFFERED), gone=10))
    start, run, end = 5 * HOUR, 6 * HOUR, 8 * HOUR
    succeeded = Result("Succeeded", "", 0, is_own=True)
    ended: dict[str, Any] = {
        "end_us": us(end),
        "end_by": End.FINISHED,
        "gap": None,
        "deletion_us": None,
        "preempted_us": None,
    }
    red = pod(
        "a",
        segment(start, run, state=State.STARTING, quantity=2 * GPU, price=DEAR),
        segment(run, end, quantity=2 * GPU, price=DEAR),
        **ended | {"result": succeeded},
    )
    blue = pod("b", segment(start, end, tenant="blue", price=None), job="other", **ended)
    ledger.write(step(red, blue, at=100 * HOUR))
    hours = (
        hour(run, run + HOUR, since=run, used=1800),
        hour(start, start + HOUR, of=replace(WHOLE, pod_uid="b"), since=start, used=3600, burst=1800),
    )
    ledger.write(reported(*(replace(each, open=False) for each in hours), at=100 * HOUR))


def test_every_loss_has_its_cause_at_the_price_of_the_node(ledger: Ledger, reader: LedgerReader) -> None:
    fill(ledger)

    found, billed = parts(reader, 5, 20)

    assert found == {
        ("-", "allocated", "free"): (40 - 6 - 3, (2 + 2 + 3 + 3 + 3) * 8 - 2 * (2 + 2 + 3) - (2 + 2 + 3)),
        ("red", "running", "starting"): (2, 4),
        ("red", "measured", "unmeasured"): (3, 2 + 6),
        ("red", "used", "idle"): (Fraction(1, 2), 1),
        ("red", "succeeded", "succeeded"): (Fraction(1, 2), 1),
        ("blue", "measured", "unmeasured"): (2, 2 + 3),
        ("blue", "used", "idle"): (Fraction(1, 2), 1),
        ("blue", "succeeded", "failed"): (Fraction(1, 2), 1),
    }
    assert billed == {"red": 6 * 5}


def test_with_a_filter_it_begins_with_what_was_allocated(ledger: Ledger, reader: LedgerReader) -> None:
    fill(ledger)

    found, billed = parts(reader, 5, 20, tenant="red")

    assert {(tenant, step) for tenant, step, _ in found} == {
        ("red", each) for each in ("running", "measured", "used", "succeeded")
    }
    assert billed == {"red": 30}


def test_lost_work_is_subtracted_once_as_far_as_it_was_used(ledger: Ledger, reader: LedgerReader) -> None:
    fill(ledger)
    ledger.write(lost(LostPod("a", us(6 * HOUR + 1800), us(8 * HOUR), CheckpointSource.ANNOTATION)))
    ledger.write(lost(LostPod("b", us(5 * HOUR), us(8 * HOUR), CheckpointSource.START), victim="b"))

    found, billed = parts(reader, 5, 20)

    used = {(tenant, step, cause): hours for (tenant, step, cause), (hours, _) in found.items() if tenant != "-"}
    assert used == {
        ("red", "running", "starting"): 2,
        ("red", "measured", "unmeasured"): 3,
        ("red", "used", "idle"): Fraction(1, 2),
        ("red", "not_lost", "lost_since_checkpoint"): Fraction(1, 4),
        ("red", "succeeded", "succeeded"): Fraction(1, 4),
        ("blue", "measured", "unmeasured"): 2,
        ("blue", "used", "idle"): Fraction(1, 2),
        ("blue", "not_lost", "lost_since_start"): Fraction(1, 2),
    }
    assert found["red", "not_lost", "lost_since_checkpoint"][1] == Fraction(1, 2)
    assert billed == {"red": 30}


def test_a_pod_that_proves_to_be_no_victim_loses_nothing(ledger: Ledger, reader: LedgerReader) -> None:
    fill(ledger)
    ledger.write(lost(LostPod("a", us(6 * HOUR), us(8 * HOUR), CheckpointSource.START)))
    before = parts(reader, 5, 20)

    ledger.write(step(at=100 * HOUR, lost_work={"a": None}))

    assert ("red", "not_lost", "lost_since_start") in before[0]
    assert reader.lost(ALWAYS, ()) == []


def test_a_pod_counts_for_the_latest_of_two_victims(ledger: Ledger, reader: LedgerReader) -> None:
    fill(ledger)
    member = LostPod("a", us(6 * HOUR), us(8 * HOUR), CheckpointSource.START)
    ledger.write(lost(member, victim="b"))
    ledger.write(lost(member))
    ledger.write(lost(victim="b"))

    assert [each.gpu_time for each in reader.lost(ALWAYS, ())] == [4 * GPU_HOUR]


def lost(*found: LostPod, victim: str = "a") -> Changes:
    return step(at=100 * HOUR, lost_work={victim: replace(LOST_WORK, victim_uid=victim, pods=found)})


def measured_for_two_hours(ledger: Ledger, *, used: int) -> None:
    """A pod that runs for an hour and terminates for another one; of each, `used` seconds are used."""
    ledger.write(priced((1, TWO)))
    ledger.write(node("node-1", (5, OFFERED)))
    stop = segment(6 * HOUR, 7 * HOUR, state=State.TERMINATING)
    ledger.write(step(pod("a", segment(5 * HOUR, 6 * HOUR), stop), at=100 * HOUR))
    since = 5 * HOUR
    hours = (hour(each, each + HOUR, since=since, used=used) for each in (since, 6 * HOUR))
    ledger.write(reported(*hours, at=100 * HOUR))


def test_what_was_measured_beyond_running_time_is_not_idle_too(ledger: Ledger, reader: LedgerReader) -> None:
    measured_for_two_hours(ledger, used=900)

    found, _ = parts(reader, 5, 7, tenant="red")

    assert {(step, cause): hours for (_, step, cause), (hours, _) in found.items()} == {
        ("running", "terminating"): 1,
        ("used", "idle"): Fraction(1, 2),
        ("succeeded", "preempted"): Fraction(1, 2),
    }


def test_what_was_used_beyond_running_time_is_a_part_of_its_own(ledger: Ledger, reader: LedgerReader) -> None:
    measured_for_two_hours(ledger, used=2700)

    found, _ = parts(reader, 5, 7, tenant="red")

    assert {(step, cause): hours for (_, step, cause), (hours, _) in found.items()} == {
        ("running", "terminating"): 1,
        ("measured", "used_beyond_running"): Fraction(1, 2),
        ("succeeded", "preempted"): Fraction(3, 2),
    }


def test_it_stays_the_same_when_details_are_rolled_up(ledger: Ledger, reader: LedgerReader) -> None:
    fill(ledger, dearer=24)
    ledger.write(lost(LostPod("a", us(6 * HOUR + 1801), us(8 * HOUR), CheckpointSource.ANNOTATION)))
    before = parts(reader, 0, 96)

    assert list(ledger.roll_up(5 * US_PER_DAY))[-1] == 2
    assert parts(reader, 0, 96) == before


def test_a_price_that_changed_within_a_day_needs_the_details_of_that_day(ledger: Ledger, reader: LedgerReader) -> None:
    fill(ledger, dearer=7)

    assert list(ledger.roll_up(5 * US_PER_DAY))[-1] == 2
    with pytest.raises(DetailRolledUp, match="1970-01-01 07:00:00 UTC is inside a day before 1970-01-06"):
        parts(reader, 0, 96)
