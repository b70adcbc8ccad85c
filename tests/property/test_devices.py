"""Whatever drivers and kubelets tell, and when: a GPU's time, use and energy is somebody's, or said to be nobody's."""

from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gputally.aggregator.agent_client import implausible
from gputally.metering.device_accounts import DeviceAccounts, forget_hours
from gputally.metering.reporting import AssignmentTotals, DeviceSnapshot
from gputally.model.devices import (
    Gpu,
    GpuCondition,
    Part,
    PartAllocation,
    PartAllocations,
    Process,
    Reading,
    Source,
    Span,
)
from gputally.model.units import GPU, US_PER_HOUR, US_PER_SECOND
from gputally.model.usage import AssignmentReport, GpuHour, Hour, UsageCursor, UsageReport
from tests.unit.metering.naive import NaiveGpu

ZERO_US = 480_000 * US_PER_HOUR - 1200 * US_PER_SECOND
"""Twenty minutes before an hour begins."""
LAYOUTS: tuple[dict[str, int], ...] = (
    {"whole": GPU},
    {"1": 428_571, "2": 285_714, "3": 142_857},
    {"2": 285_714, "4": 142_857},
    {},
)
PARTS = ("whole", "whole", "1", "2", "3", "4")
PODS = {"a": (1, 1), "b": (1, 1), "c": (1, 3), "d": (2, 3)}
"""Replicas, and replicas in all."""
STEPS = ("poll",) * 8 + ("read",) * 10 + ("again", "lose", "silence")
HOUR_S = 3600


def us(second: int) -> int:
    return ZERO_US + second * US_PER_SECOND


@dataclass
class Node:
    """Two GPUs that are told to the books and to the naive ones alike."""

    random: Random
    books: DeviceAccounts = field(default_factory=DeviceAccounts)
    naive: dict[str, NaiveGpu] = field(default_factory=dict)
    polls: list[tuple[int, PartAllocations]] = field(default_factory=list)
    held: set[PartAllocation] = field(default_factory=set)
    layouts: dict[str, dict[str, int]] = field(default_factory=dict)
    told_to: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    now: int = 0

    def poll(self) -> None:
        """A few begin or end, or nothing happens."""
        for _ in range(self.random.choice((0, 0, 1, 2))):
            pod = self.random.choice([*PODS])
            replicas, in_all = PODS[pod]
            held = PartAllocation(
                part=f"{self._gpu()}/{self.random.choice(PARTS)}",
                namespace="ml",
                pod=pod,
                container="main",
                resource="nvidia.com/gpu",
                pod_uid=f"u{pod}",
                replicas=replicas,
                replicas_in_all=in_all,
            )
            self.held ^= {held}
        self.now += 1
        self.polls.append((self.now, PartAllocations(at_us=us(self.now), held=tuple(self.held))))
        self.books.allocated(self.polls[-1][1])

    def again(self) -> None:
        """The kubelet says the same, at the same time and later."""
        if not self.polls:
            return
        self.now += 1
        before = self.books.snapshot(us(self.now))
        self.books.allocated(self.polls[-1][1])
        assert self.books.snapshot(us(self.now)) == before
        self.polls.append((self.now, PartAllocations(at_us=us(self.now), held=self.polls[-1][1].held)))
        self.books.allocated(self.polls[-1][1])
        assert self.books.snapshot(us(self.now)).assignments == before.assignments

    def read(self) -> None:
        gpu = self._gpu()
        known = self.naive.get(gpu)
        if known and known.at >= self.now:
            return
        late = self.random.choice((0, 0, 1, 3))
        if gpu not in self.layouts or self.random.random() < 0.05:
            self.layouts[gpu] = self.random.choice(LAYOUTS)
        parts = [self._part(f"{gpu}/{name}", weight, self.now - late) for name, weight in self.layouts[gpu].items()]
        reading = Reading(
            gpu=Gpu(uuid=gpu, index=0, minor=0, model="NVIDIA H100", pci_bus_id=""),
            at_us=us(self.now),
            mig="whole" not in self.layouts[gpu],
            parts=tuple(parts),
            condition=GpuCondition(energy=self._counter(gpu)),
        )
        self.books.read(reading)
        if known:
            known.read(reading, self.now, self.polls, ZERO_US)
        else:
            self.naive[gpu] = NaiveGpu(reading, self.now)

    def lose(self) -> None:
        gpu = self._gpu()
        self.books.lost(gpu, us(self.now))
        if gpu in self.naive:
            self.naive[gpu].lose(self.now, self.polls)

    def silence(self) -> None:
        """Neither the kubelet nor the driver tells anything."""
        self.now += self.random.choice((5, 20, 60))

    def _gpu(self) -> str:
        return self.random.choice(("g0", "g1"))

    def _counter(self, gpu: str) -> int:
        """It is reset now and then, falls or jumps to what cannot be, or is read a little too low once."""
        grown = self.counters.get(gpu, 10**10) + self.random.choice((0, 7, 99_999))
        event = self.random.choices(("grow", "jitter", "reset", "fall", "jump"), (90, 5, 3, 1, 1))[0]
        self.counters[gpu] = {"reset": grown % 1000, "fall": grown // 2, "jump": grown * 9}.get(event, grown)
        return max(0, grown - self.random.randint(1, 10**6)) if event == "jitter" else self.counters[gpu]

    def _part(self, uuid: str, weight: int, to: int) -> Part:
        """Told of up to `to`, but for a gap now and then."""
        from_, spans = self.told_to.get(uuid, 0), []
        while from_ < to:
            until = min(to, from_ + self.random.choice((1, 2, 5, 60)))
            if self.random.random() < 0.9:
                spans.append(Span(us(from_), us(until), self.random.choice((0, 333_333, 1_000_000))))
            from_ = until
        self.told_to[uuid] = from_
        processes = None
        if self.random.random() < 0.6:
            uids = self.random.choices(("ua", "ub", "uc", "ud", "", "ux", None), (9, 9, 9, 9, 3, 3, 1), k=3)
            processes = tuple(Process(pid=pid, busy=100_000 + pid, pod_uid=uid) for pid, uid in enumerate(uids))
        return Part(
            uuid=uuid, weight=weight, source=Source.SAMPLES, busy=tuple(spans), memory_used=1 << 30, processes=processes
        )


@dataclass
class Reader:
    """Keeps what the reports since its last one say, some of which are lost on their way."""

    random: Random
    cursor: UsageCursor | None = None
    gpus: dict[str, dict[int, GpuHour]] = field(default_factory=dict)
    assignments: dict[tuple[str, str, int], tuple[AssignmentReport, dict[int, Hour]]] = field(default_factory=dict)
    asked_for_all: int = 0

    def read(self, books: DeviceAccounts, now_us: int) -> bool:
        """Ask once; returns whether the response arrived."""
        asked = self.random.choice((self.cursor, self.cursor, self.cursor, None))
        report = books.report(now_us, "n1", "e1", cursor=asked)
        if self.random.random() < 0.2:
            return False
        if not report.since:
            self.asked_for_all += asked is not None
            self.gpus.clear()
            self.assignments.clear()
        for gpu in report.gpus:
            self.gpus.setdefault(gpu.uuid, {}).update({hour.start_us: hour for hour in gpu.hours})
        for each in report.assignments:
            _, hours = self.assignments.get((each.device, each.pod, each.since_us), (each, {}))
            hours.update({hour.start_us: hour for hour in each.hours})
            self.assignments[each.device, each.pod, each.since_us] = each, hours
        self._drop_left({(each.device, each.pod, each.since_us) for each in report.assignments})
        self.cursor = UsageCursor(report.epoch, report.revision)
        self._forget(report.journal_start_us)
        return True

    def _drop_left(self, reported: set[tuple[str, str, int]]) -> None:
        """Each report has all current assignments: what it lacks has ended, and left the journal."""
        for key, (each, _) in tuple(self.assignments.items()):
            if each.until_us is None and key not in reported:
                del self.assignments[key]

    def _forget(self, journal_start_us: int) -> None:
        for key, (each, hours) in tuple(self.assignments.items()):
            if each.until_us is not None and each.until_us <= journal_start_us:
                del self.assignments[key]
            forget_hours(hours, journal_start_us)
        for gpu_hours in self.gpus.values():
            forget_hours(gpu_hours, journal_start_us)

    def assert_knows(self, report: UsageReport) -> None:
        """It has what a whole report has."""
        assert self.gpus == {gpu.uuid: {hour.start_us: hour for hour in gpu.hours} for gpu in report.gpus}
        kept = {key: replace(each, hours=()) for key, (each, _) in self.assignments.items()}
        assert kept == {(o.device, o.pod, o.since_us): replace(o, hours=()) for o in report.assignments}
        assert {key: hours for key, (_, hours) in self.assignments.items()} == {
            (o.device, o.pod, o.since_us): {hour.start_us: hour for hour in o.hours} for o in report.assignments
        }


@given(st.randoms(use_true_random=True), st.sampled_from((12, 10_000)))
@settings(max_examples=15)
def test_readers_that_get_only_what_changed_know_all_that_a_whole_report_says(
    random: Random, max_assignments: int
) -> None:
    node = Node(random, books=DeviceAccounts(journal_us=0, max_assignments=max_assignments))
    readers = [Reader(random), Reader(random)]
    while node.now < HOUR_S:
        for step in random.choices(STEPS, k=random.choice((1, 9, 40))):
            node.now += random.choice((0, 1, 1, 2, 4))
            getattr(node, step)()
        for reader in random.choices(readers, k=2):
            if reader.read(node.books, us(node.now)):
                reader.assert_knows(node.books.report(us(node.now), "n1", "e1"))

    assert max_assignments == 12 or not any(reader.asked_for_all for reader in readers)


@given(st.randoms(use_true_random=True))
@settings(max_examples=15)
def test_the_books_are_those_of_one_who_looks_every_second(random: Random) -> None:
    node = Node(random)
    report, snapshot = node.books.report(us(0), "n1", "e1"), node.books.snapshot(us(0))
    while node.now < HOUR_S:
        for step in random.choices(STEPS, k=9):
            node.now += random.choice((0, 1, 1, 2, 4))
            getattr(node, step)()
        earlier_report, report = report, node.books.report(us(node.now), "n1", "e1")
        earlier_snapshot, snapshot = snapshot, node.books.snapshot(us(node.now))
        assert_nothing_fell(earlier_report, report)
        assert_no_total_fell(earlier_snapshot, snapshot)
        assert_conserved(snapshot, report)
        assert node.books.report(us(node.now), "n1", "e1") == report
        assert implausible(report) == ""

    assert_as_naive(node, snapshot, report)


def cumulative(assignment: AssignmentReport) -> dict[int, tuple[int, ...]]:
    return {
        hour.start_us: (hour.to_us, hour.measured, hour.used, hour.burst, hour.memory, hour.memory_us, hour.energy)
        for hour in assignment.hours
    }


def assert_nothing_fell(earlier: UsageReport, later: UsageReport) -> None:
    now = {(each.device, each.pod, each.since_us): cumulative(each) for each in later.assignments}
    for assignment in earlier.assignments:
        for start_us, amounts in cumulative(assignment).items():
            after = now[assignment.device, assignment.pod, assignment.since_us][start_us]
            assert all(new >= old for new, old in zip(after, amounts, strict=True))
    assert later.watermark_us >= earlier.watermark_us or {g.lost for g in earlier.gpus} != {g.lost for g in later.gpus}


def assert_no_total_fell(earlier: DeviceSnapshot, later: DeviceSnapshot) -> None:
    now = {(each.part, each.pod): each for each in later.assignments}
    for each in earlier.assignments:
        after = now.get((each.part, each.pod))
        if after is None or fell(each, after):
            assert_may_begin_anew(each, later)


def fell(each: AssignmentTotals, after: AssignmentTotals) -> bool:
    pairs = (
        (each.held, after.held),
        (each.measured, after.measured),
        (each.used, after.used),
        (each.burst, after.burst),
        (each.energy, after.energy),
        (each.memory, after.memory),
        (each.memory_us, after.memory_us),
    )
    return any(later < earlier for earlier, later in pairs)


def assert_may_begin_anew(each: AssignmentTotals, later: DeviceSnapshot) -> None:
    """Who ended, and was not scraped for ten minutes."""
    assert not each.is_held
    assert later.at_us > us(600)


def assert_conserved(snapshot: DeviceSnapshot, report: UsageReport) -> None:
    """To the last µs·µGPU and mJ."""
    for gpu, told in zip(snapshot.gpus, report.gpus, strict=True):
        mine = [hour for each in report.assignments if each.gpu == gpu.uuid for hour in each.hours]
        assert gpu.states.total == GPU * (gpu.at_us - gpu.since_us)
        assert sum(hour.used for hour in mine) + gpu.work.unattributed + gpu.work.unknown == gpu.work.used
        assert sum(hour.energy for hour in mine) + gpu.work.unallocated_energy == gpu.work.energy
        assert sum(hour.unattributed for hour in told.hours) == gpu.work.unattributed
        assert sum(hour.energy for hour in told.hours) == gpu.work.unallocated_energy
        assert sum(hour.measured for hour in mine) <= gpu.work.measured
    for each in snapshot.assignments:
        hours = [h for o in report.assignments if (o.device, o.pod) == (each.part, each.pod) for h in o.hours]
        total = (sum(h.used for h in hours), sum(h.burst for h in hours), sum(h.energy for h in hours))
        mine_alone = (each.used, each.burst, each.energy)
        assert mine_alone == total or snapshot.at_us > us(600)  # who ended ten minutes ago begins anew at 0


def assert_as_naive(node: Node, snapshot: DeviceSnapshot, report: UsageReport) -> None:
    """States and energy exactly; what is divided within one unit for each piece it was divided in."""
    pieces = 2 * node.now + 10
    for gpu in snapshot.gpus:
        sums, states = node.naive[gpu.uuid].sums, gpu.states
        found = (states.held, states.free, states.unsliced, states.unknown, states.lost)
        expected = (sums.held, sums.free, sums.unsliced, sums.unknown, sums.lost)
        assert found == tuple(each * US_PER_SECOND for each in expected)
        assert (gpu.work.used, gpu.work.unknown, gpu.work.energy) == (sums.used, sums.used_unknown, sums.energy)
        assert gpu.work.energy_faults == node.naive[gpu.uuid].counter_faults
        assert abs(gpu.work.unattributed - sums.unattributed) <= pieces
        assert abs(gpu.work.unallocated_energy - sums.unallocated_energy) <= pieces
        told = {(o.device, o.pod) for o in report.assignments if o.gpu == gpu.uuid}
        for who in told | sums.by_assignment.keys() | sums.energy_by_assignment.keys():
            hours = [h for o in report.assignments if (o.device, o.pod) == who for h in o.hours]
            assert abs(sum(h.used for h in hours) - sums.by_assignment.get(who, Fraction(0))) <= pieces
            assert abs(sum(h.energy for h in hours) - sums.energy_by_assignment.get(who, Fraction(0))) <= pieces
