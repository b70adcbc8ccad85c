"""What the driver and the kubelet tell becomes each container's time, use, memory and energy."""

import pytest

from gputally.metering.device_accounts import DeviceAccounts
from gputally.metering.sums import MeasuredWork, States
from gputally.model.devices import Source
from gputally.model.units import GPU_SECOND
from gputally.model.usage import GpuHour, Hour
from tests.unit.metering.readings import (
    HOUR_US,
    NEXT_HOUR,
    allocations,
    assignment,
    gpu_totals,
    held,
    part,
    process,
    reading,
    report,
    seconds,
    span,
    totals,
    us,
)


@pytest.fixture
def books() -> DeviceAccounts:
    """One whole GPU, read at 0, that nobody holds."""
    books = DeviceAccounts()
    books.allocated(allocations(0))
    books.read(reading(0, part(), energy=1000))
    return books


def test_a_container_has_what_its_gpu_did_while_it_held_it(books: DeviceAccounts) -> None:
    books.allocated(allocations(1, held()))
    books.read(reading(2, part(span(0, 2, 0.5), memory_used=100), energy=1300))

    assert assignment(books, "a", 2).hours == (
        Hour(
            start_us=HOUR_US,
            from_us=us(1),
            to_us=us(2),
            measured=GPU_SECOND,
            used=GPU_SECOND // 2,
            memory=100_000_000,
            memory_us=1_000_000,
            energy=150,
        ),
    )
    assert report(books, 2).gpus[0].hours == (GpuHour(start_us=HOUR_US, unattributed=GPU_SECOND // 2, energy=150),)


def test_a_gpus_time_is_held_or_free_and_its_use_somebodys_or_nobodys(books: DeviceAccounts) -> None:
    books.allocated(allocations(1, held()))
    books.read(reading(4, part(span(0, 2, 0.5), span(3, 4, 1)), energy=1020))

    found = gpu_totals(books, 4)
    assert found.states == States(held=3 * GPU_SECOND, free=GPU_SECOND)
    assert found.work == MeasuredWork(
        measured=3 * GPU_SECOND,
        used=2 * GPU_SECOND,
        unattributed=GPU_SECOND // 2,
        energy=20,
        unallocated_energy=5,
    )
    assert found.states.total == 4 * GPU_SECOND


def test_an_hour_has_what_was_done_in_it(books: DeviceAccounts) -> None:
    for at in range(5, NEXT_HOUR + 10, 5):
        books.allocated(allocations(at, held()))
    books.read(reading(NEXT_HOUR - 4, part()))
    books.read(reading(NEXT_HOUR + 2, part(span(NEXT_HOUR - 4, NEXT_HOUR + 2, 1), memory_used=8), energy=1060))

    first, second = assignment(books, "a", NEXT_HOUR + 2).hours
    assert (seconds(first.used), first.memory_us, first.energy) == (4, 4_000_000, 40)
    assert (seconds(second.used), second.memory_us, second.energy) == (2, 2_000_000, 20)
    assert (first.to_us, second.from_us, second.to_us) == (us(NEXT_HOUR), us(NEXT_HOUR), us(NEXT_HOUR + 2))


def test_use_above_the_share_is_burst() -> None:
    books = DeviceAccounts()
    books.allocated(allocations(0, held("a", replicas=1, replicas_in_all=4)))
    books.read(reading(0, part()))
    books.read(reading(4, part(span(0, 2, 1), span(2, 4, 0.1))))

    found = totals(books, "a", 4)
    assert [seconds(each) for each in (found.held, found.measured, found.used, found.burst)] == [1, 1, 2.2, 1.5]
    assert (found.share, found.gpu, found.is_held) == (250_000, "GPU-0", True)


def test_utilisation_that_is_told_late_goes_to_who_held_the_gpu_then(books: DeviceAccounts) -> None:
    books.allocated(allocations(1, held("a")))
    books.allocated(allocations(2, held("b")))
    books.read(reading(2.5, part(span(0, 1.5, 1))))
    assert report(books, 2.5).watermark_us == us(1.5)

    books.read(reading(3, part(span(1.5, 3, 1))))

    assert seconds(totals(books, "a", 3).used) == 1
    assert seconds(totals(books, "b", 3).used) == 1
    assert seconds(gpu_totals(books, 3).work.unattributed) == 1
    assert report(books, 3).watermark_us == us(3)


def test_utilisation_told_twice_counts_once_and_none_before_the_first_reading_does(books: DeviceAccounts) -> None:
    books.read(reading(1, part(span(-5, 1, 1), span(0, 1, 1))))
    books.read(reading(1, part(span(0, 1, 1))))
    books.read(reading(2, part(span(0.5, 1.5, 1), span(1.5, 9, 1))))

    assert seconds(gpu_totals(books, 2).work.used) == 2


def test_a_reading_from_the_past_changes_nothing(books: DeviceAccounts) -> None:
    books.read(reading(5, part(), energy=1100))
    books.lost("GPU-0", us(4))
    before = books.snapshot(us(6))

    books.read(reading(3, part(uuid="MIG-1", weight=1), energy=2000))
    books.lost("GPU-0", us(2))

    assert books.snapshot(us(6)) == before


def test_time_that_is_not_told_of_is_not_measured_and_the_books_go_on(books: DeviceAccounts) -> None:
    books.read(reading(15, part()))
    assert report(books, 15).watermark_us == us(5)

    books.read(reading(16, part(source=Source.NONE)))

    assert report(books, 16).watermark_us == us(16)
    assert gpu_totals(books, 16).work.measured == 0


def test_what_was_used_while_nobody_knew_who_held_the_gpu_is_not_unattributed() -> None:
    books = DeviceAccounts()
    books.read(reading(0, part(), energy=0))
    books.allocated(allocations(2, held()))
    books.read(reading(4, part(span(0, 4, 0.5)), energy=40))

    found = gpu_totals(books, 4)
    assert (seconds(found.work.unknown), seconds(found.work.unattributed)) == (1, 0)
    assert (seconds(found.states.unknown), seconds(found.states.held)) == (2, 2)
    assert (totals(books, "a", 4).energy, found.work.unallocated_energy) == (20, 20)


def test_a_kubelet_that_is_silent_is_believed_for_ten_seconds() -> None:
    books = DeviceAccounts()
    books.allocated(allocations(0, held()))
    books.read(reading(0, part()))
    books.read(reading(20, part(span(0, 20, 1))))

    assert seconds(totals(books, "a", 20).used) == 10
    assert seconds(gpu_totals(books, 20).work.unknown) == 10


def test_processes_of_others_on_a_held_gpu_are_unattributed() -> None:
    books = DeviceAccounts()
    books.allocated(allocations(0, held(pod_uid="ua")))
    books.read(reading(0, part()))
    processes = (process("ua", 300_000, memory=7), process("", 100_000, memory=2))
    books.read(reading(2, part(span(0, 2, 1), processes=processes), energy=None))

    assert (seconds(totals(books, "a", 2).used), totals(books, "a", 2).memory_now) == (1.5, 7)
    assert seconds(gpu_totals(books, 2).work.unattributed) == 0.5


def test_memory_between_readings_that_are_far_apart_is_unknown() -> None:
    books = DeviceAccounts()
    for at in range(0, 70, 5):
        books.allocated(allocations(at, held()))
    books.read(reading(0, part()))
    books.read(reading(61, part(memory_used=9)))
    assert (totals(books, "a", 61).memory_us, totals(books, "a", 61).memory_now) == (0, None)

    books.read(reading(62, part(memory_used=9)))

    assert (totals(books, "a", 62).memory_us, totals(books, "a", 62).memory_now) == (1_000_000, 9)


def test_slices_share_the_energy_of_their_gpu_by_what_they_used_or_else_by_what_they_are() -> None:
    books = DeviceAccounts()
    books.allocated(allocations(0, held("a", part="MIG-1"), held("b", part="MIG-2")))
    for at, one, two in ((0, 0, 0), (1, 0.25, 0.75)):
        busy = span(at - 1, at, one), span(at - 1, at, two)
        parts = part(busy[0], uuid="MIG-1", weight=428_571), part(busy[1], uuid="MIG-2", weight=142_857)
        books.read(reading(at, *parts, energy=100 * at))
    assert (totals(books, "a", 1).energy, totals(books, "b", 1).energy) == (50, 50)

    idle = part(span(1, 2, 0), uuid="MIG-1", weight=428_571), part(span(1, 2, 0), uuid="MIG-2", weight=142_857)
    books.read(reading(2, *idle, energy=200))

    assert (totals(books, "a", 2).energy, totals(books, "b", 2).energy) == (93, 64)
    assert gpu_totals(books, 2).work.unallocated_energy == 43
    assert gpu_totals(books, 2).states.unsliced == 2_000_000 * 428_572


def test_a_slice_that_disappears_ends_no_holder_and_a_new_one_begins_with_its_reading() -> None:
    books = DeviceAccounts()
    books.allocated(allocations(0, held(part="MIG-1")))
    books.read(reading(0, part(uuid="MIG-1", weight=500_000)))
    books.read(reading(2, part(span(1, 2, 1), uuid="MIG-2", weight=250_000)))
    books.allocated(allocations(3))
    books.read(reading(4, part(span(1, 4, 1), uuid="MIG-2", weight=250_000)))

    assert (assignment(books, "a", 4).share, assignment(books, "a", 4).until_us) == (500_000, us(3))
    found = gpu_totals(books, 4)
    assert [seconds(each) for each in (found.states.held, found.states.free, found.states.unsliced)] == [1, 0.5, 2.5]
    assert seconds(found.work.used) == 0.5


def test_slices_that_are_said_to_be_more_than_a_gpu_are_scaled_to_it() -> None:
    books = DeviceAccounts()
    books.allocated(allocations(0))
    parts = part(uuid="MIG-1", weight=900_000), part(uuid="MIG-2", weight=600_000)
    books.read(reading(0, *parts))
    books.read(reading(5, *parts))

    assert gpu_totals(books, 5).states == States(free=5 * GPU_SECOND)


def test_a_gpu_the_device_plugin_took_back_is_not_free(books: DeviceAccounts) -> None:
    books.allocated(allocations(1, unhealthy=frozenset({"GPU-0"})))
    books.read(reading(3, part()))

    assert gpu_totals(books, 3).states == States(free=GPU_SECOND, unhealthy=2 * GPU_SECOND)


def test_a_lost_gpu_stands_still_and_goes_on_when_it_is_back(books: DeviceAccounts) -> None:
    books.allocated(allocations(0.5, held()))
    books.read(reading(2, part(span(0, 2, 1)), energy=9_001_000))
    books.lost("GPU-0", us(3))
    books.lost("GPU-0", us(4))
    books.lost("GPU-9", us(4))
    assert (report(books, 5).gpus[0].lost, report(books, 5).watermark_us) == (True, us(5))

    books.read(reading(6, part(span(2, 6, 1)), energy=30))
    books.read(reading(7, part(span(6, 7, 1)), energy=50))

    found = gpu_totals(books, 7)
    assert found.states == States(held=3_500_000_000_000, free=GPU_SECOND // 2, lost=3 * GPU_SECOND)
    assert seconds(totals(books, "a", 7).used) == 2.5
    assert (found.work.energy, found.work.energy_resets, found.lost) == (9_000_050, 1, False)
    assert (totals(books, "a", 7).energy, found.work.unallocated_energy) == (6_750_020, 2_250_030)


def test_the_watermark_is_that_of_the_gpu_that_is_behind() -> None:
    books = DeviceAccounts()
    assert report(books, 1).watermark_us == us(1)

    for uuid, at in (("GPU-0", 2), ("GPU-1", 3)):
        books.read(reading(at, part(uuid=uuid, source=Source.NONE), gpu=uuid))

    assert report(books, 4).watermark_us == us(2)
    assert [each.watermark_us for each in report(books, 4).gpus] == [us(2), us(3)]


def test_a_holder_is_reported_before_its_gpu_is_read() -> None:
    books = DeviceAccounts()
    books.allocated(allocations(0, held(), unknown=3))
    assert (assignment(books, "a", 0).gpu, assignment(books, "a", 0).share) == ("", 0)
    assert books.snapshot(us(0)).unknown_devices == 3

    books.read(reading(1, part()))

    assert (assignment(books, "a", 1).gpu, assignment(books, "a", 1).share) == ("GPU-0", 1_000_000)
