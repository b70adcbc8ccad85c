"""The contract of every ledger reader, on all back-ends and during writes."""

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from gputally.accounting.changes import Changes
from gputally.accounting.jobs.record import JobRecord
from gputally.errors import LedgerError
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import DIMENSIONS, AllocatedTime, LedgerState, SegmentRecord, Window
from gputally.model.allocation import End, Outcome, State
from gputally.model.units import COST_UNIT, GPU, GPU_SECOND, US_PER_SECOND
from tests.contract.conftest import BackEnd
from tests.contract.records import ACCOUNTED_S, ALWAYS, OPENED_S, PRICE, pod, segment, step, us

if TYPE_CHECKING:
    from gputally.model.price import Price

MONTHS_S = 3 * 31 * 86_400


def window(start: int, end: int) -> Window:
    return Window(us(start), us(end))


def spans(found: list[SegmentRecord]) -> list[tuple[str, int, int]]:
    """Pod UID, start and end in seconds."""
    return [
        (each.pod_uid, each.segment.start_us // US_PER_SECOND, (each.segment.end_us or 0) // US_PER_SECOND)
        for each in found
    ]


def test_the_state_has_the_cluster_and_the_accounted_time(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.bind("cluster-1")
    ledger.write(Changes(accounting_start_us=us(1000), evaluated_us=us(1003), at_us=us(1002)))

    assert reader.state() == LedgerState(cluster="cluster-1", accounting_start_us=us(1000), accounted_us=us(1003))


def test_reading_an_empty_ledger_fails_with_a_clear_error(reader: LedgerReader) -> None:
    with pytest.raises(LedgerError, match="contains no accounting yet; wait until its aggregator is ready"):
        list(reader.segments(ALWAYS))


def test_an_open_reader_sees_later_writes(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, None))))
    assert spans(list(reader.segments(ALWAYS))) == [("a", 1000, ACCOUNTED_S)]

    ledger.write(step(pod("a", segment(1000, 1400), revision=2)))
    assert spans(list(reader.segments(ALWAYS))) == [("a", 1000, 1400)]


def test_a_ledger_can_be_read_without_a_writer(back_end: BackEnd) -> None:
    with back_end.open() as ledger:
        ledger.write(step(pod("a", segment(1000, 1400))))

    with back_end.read() as one, back_end.read() as other:
        assert spans(list(one.segments(ALWAYS))) == spans(list(other.segments(ALWAYS))) == [("a", 1000, 1400)]


def test_reading_does_not_block_writing(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(*(pod(uid, segment(1000, None)) for uid in "abc")))
    reading = reader.segments(ALWAYS)
    next(reading)

    ledger.write(step(pod("d", segment(1000, 1400))))

    assert len(list(reading)) >= 2
    assert spans(list(reader.segments(ALWAYS)))[-1] == ("d", 1000, 1400)


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (1100, 1150, [(1100, 1150)]),
        (1000, 1001, [(1000, 1001)]),
        (900, 1001, [(1000, 1001)]),
        (1199, 1300, [(1199, 1200)]),
        (900, 1300, [(1000, 1200)]),
        (900, 1000, []),
        (1200, 1300, []),
        (1100, 1100, []),
    ],
)
def test_segments_are_cut_to_the_window(
    ledger: Ledger, reader: LedgerReader, start: int, end: int, found: list[tuple[int, int]]
) -> None:
    ledger.write(step(pod("a", segment(1000, 1200))))

    assert [each[1:] for each in spans(list(reader.segments(window(start, end))))] == found


def test_an_open_segment_ends_at_the_accounted_time(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, None)), at=2000))

    assert spans(list(reader.segments(window(1500, 3000)))) == [("a", 1500, 2000)]
    assert list(reader.segments(window(2000, 3000))) == []


def test_segments_are_sorted_by_pod_and_start(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("c", segment(1000, 1500), segment(1500, 1600)), pod("b", segment(900, None))))

    assert [each[:2] for each in spans(list(reader.segments(ALWAYS)))] == [("b", 900), ("c", 1000), ("c", 1500)]


@pytest.mark.parametrize("pods", [1, 2, 3, 4])
def test_paged_reads_return_each_record_once(
    ledger: Ledger, reader: LedgerReader, pods: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(reader), "page_pods", pods, raising=False)
    uids = [f"uid-{number}" for number in range(6)]
    ledger.write(step(*(pod(uid, segment(1000, 1100)) for uid in uids)))

    assert [each.pod_uid for each in reader.segments(ALWAYS)] == uids
    assert [each.pod_uid for each in reader.allocations(ALWAYS)] == uids
    assert [each.gpu_time for each in reader.allocated(ALWAYS, ())] == [600 * GPU_SECOND]


def test_an_allocation_has_all_fields_of_its_latest_revision(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, None)), pod("never-in-it", segment(10, 20))))
    ledger.write(step(pod("a", segment(1000, 1200), revision=7, job="tune"), at=1300))

    [found] = reader.allocations(window(1100, 1101))

    assert reader.allocation("a") == found
    assert reader.allocation("nobody") is None
    assert (found.pod_uid, found.revision, found.recorded_us, found.job) == ("a", 7, us(1300), "tune")
    assert (found.namespace, found.name, found.node, found.node_uid) == ("ml", "pod-a", "n1", "node-1")
    assert (found.class_name, found.priority, found.job_kind) == ("low", -5, "Job")
    stages = (found.created_us, found.scheduled_us, found.started_us, found.deletion_us, found.end_us)
    assert stages == (1, 2, 3, 4, 6)
    assert found.end_by is End.VANISHED
    assert (found.gap.from_us, found.gap.to_us) == (6, 9) if found.gap else False
    assert (found.outcome, found.phase, found.reason, found.exit_code) == (Outcome.PREEMPTED, "Failed", "Error", 137)


def test_a_running_allocation_has_no_result(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, None), end_us=None, end_by=None, gap=None, result=None)))

    [found] = reader.allocations(ALWAYS)

    assert (found.outcome, found.phase, found.reason, found.exit_code) == (Outcome.RUNNING, "", "", None)
    assert [each.labels for each in reader.allocated(ALWAYS, ("outcome",))] == [("running",)]


def test_the_outcome_of_a_job_is_that_of_its_pods(ledger: Ledger, reader: LedgerReader) -> None:
    """Also if it becomes known after them, and changes; a pod without a Job has its own."""
    train = JobRecord(uid="job-1", namespace="ml", name="train", created_us=1)
    alone = pod("alone", segment(1000, 1001), owner=None)
    ledger.write(step(pod("a", segment(1000, 1010)), pod("b", segment(1000, 1020)), alone))
    before = reader.allocated(ALWAYS, ("job_outcome",))
    ledger.write(step(jobs={"job-1": train}))
    running = reader.allocated(ALWAYS, ("job_outcome", "outcome"))
    ledger.write(step(jobs={"job-1": replace(train, outcome=Outcome.SUCCEEDED, ended_us=us(1020))}))
    after = reader.allocated(ALWAYS, ("job_outcome",))

    assert [each.labels for each in before] == [("preempted",)]
    assert [each.labels for each in running] == [("preempted", "preempted"), ("running", "preempted")]
    assert [(each.labels, each.gpu_time) for each in after] == [
        (("preempted",), GPU_SECOND),
        (("succeeded",), 30 * GPU_SECOND),
    ]
    assert {each.pod_uid: each.job_outcome for each in reader.segments(ALWAYS)} == {
        "a": Outcome.SUCCEEDED,
        "alone": Outcome.PREEMPTED,
        "b": Outcome.SUCCEEDED,
    }


def test_an_allocation_without_gpus_in_the_window_is_not_returned(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("rejected"), pod("before", segment(1000, 1100)), pod("after", segment(1200, 1300))))

    assert list(reader.allocations(window(1100, 1200))) == []


def test_allocated_time_is_grouped_by_the_given_dimensions(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(
        step(
            pod("a", segment(1000, 1010), segment(1010, 1030, tenant="blue", price=None)),
            pod("b", segment(1000, 1020, quantity=2 * GPU, state=State.STARTING), namespace="web"),
        )
    )

    assert reader.allocated(window(1005, 1025), ("tenant", "namespace")) == [
        AllocatedTime(labels=("blue", "ml"), price=None, gpu_time=15 * GPU_SECOND),
        AllocatedTime(labels=("red", "ml"), price=PRICE, gpu_time=5 * GPU_SECOND),
        AllocatedTime(labels=("red", "web"), price=PRICE, gpu_time=30 * GPU_SECOND),
    ]
    assert [(each.labels, each.gpu_time // GPU_SECOND) for each in reader.allocated(ALWAYS, ("state",))] == [
        (("running",), 20),
        (("running",), 10),
        (("starting",), 40),
    ]


@pytest.mark.parametrize("by", [(each,) for each in DIMENSIONS] + [DIMENSIONS, ()])
def test_allocated_time_equals_the_sum_of_segments(
    ledger: Ledger, reader: LedgerReader, by: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of revisions with other, more or fewer segments, and of pods in several pages."""
    monkeypatch.setattr(type(reader), "page_pods", 3, raising=False)
    first, second = segment(1000, 1010, state=State.STARTING), segment(1010, None, quantity=GPU // 3)
    ledger.write(
        step(pod("a", first, second), pod("c", first, second), *(pod(f"b{n}", first, job=f"job-{n}") for n in range(3)))
    )
    ledger.write(
        step(
            pod("a", first, segment(1010, 1500, tenant="blue", price=None), revision=2, node="n2"),
            pod("c", first, revision=2),
            pod("b1", first, segment(1010, 1020), segment(1020, 1021, pool="b"), revision=2, job_kind="Deployment"),
            pod("b2", segment(1005, 1010, queue="other"), revision=2, namespace="ml", name="renamed"),
        )
    )

    found = {(each.labels, each.price): each.gpu_time for each in reader.allocated(window(1001, 1400), by)}

    expected: dict[tuple[tuple[str, ...], Price | None], int] = {}
    for each in reader.segments(window(1001, 1400)):
        of_pod = {name: getattr(each, name) for name in DIMENSIONS if hasattr(each, name)}
        labels = tuple(of_pod[name] if name in of_pod else str(getattr(each.segment, name)) for name in by)
        time = ((each.segment.end_us or 0) - each.segment.start_us) * each.segment.quantity
        expected[labels, each.segment.price] = expected.get((labels, each.segment.price), 0) + time
    assert found == expected


def test_allocated_time_beyond_64_bits_is_exact(ledger: Ledger, reader: LedgerReader) -> None:
    """3.6 GPU-months in µs·µGPU exceed 64 bits."""
    odd_us = 1
    long = segment(OPENED_S, OPENED_S + MONTHS_S, quantity=8 * GPU + 1)
    records = [pod(f"uid-{n}", replace(long, end_us=(long.end_us or 0) + odd_us)) for n in range(5)]
    ledger.write(step(*records, at=OPENED_S + MONTHS_S + 1))

    [found] = reader.allocated(Window(0, us(10**9)), ("tenant",))

    assert found.gpu_time == 5 * (8 * GPU + 1) * (MONTHS_S * US_PER_SECOND + odd_us)
    assert found.cost == found.gpu_time * PRICE.rate


def test_a_gpu_hour_costs_its_price(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, 4600)), pod("b", segment(1000, 1001, price=None))))

    unpriced, priced = reader.allocated(ALWAYS, ())

    assert priced.cost == PRICE.per_gpu_hour * COST_UNIT
    assert unpriced.cost is None


def test_an_unknown_dimension_is_rejected(reader: LedgerReader) -> None:
    with pytest.raises(ValueError, match="colour: not a dimension of a ledger; use namespace, name, node, "):
        reader.allocated(ALWAYS, ("tenant", "colour"))


def test_periods_between_cuts_are_windows(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, 1007), segment(1007, None, tenant="blue")), pod("b", segment(1003, 1404))))

    cuts = [1001, 1006, 1007, 1300]
    found = reader.allocated(window(900, 6000), ("tenant",), cuts=list(map(us, cuts)))

    for period, bounds in enumerate(pairwise([900, *cuts, 6000])):
        of_period = [replace(each, period=0) for each in found if each.period == period]
        assert of_period == reader.allocated(window(*bounds), ("tenant",)) != []


def test_consecutive_windows_add_up_to_the_total(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, 1007), segment(1007, None)), pod("b", segment(1003, 1404))))

    cuts = [900, 1001, 1006, 1007, 1300, 2000, 6000]
    parts = [each.gpu_time for a, b in pairwise(cuts) for each in reader.allocated(window(a, b), ())]
    [whole] = reader.allocated(ALWAYS, ())
    assert sum(parts) == whole.gpu_time == (4000 + 401) * GPU_SECOND
