"""What pods did with the devices they held: each hour of each holder as last told, booked once."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from gputally.accounting.shared import shared
from gputally.accounting.usage.assignments import TOLERANCE_US, owner
from gputally.accounting.usage.usage_bounds import Room, fault_of_assignment
from gputally.accounting.usage.usage_posting import UNKNOWN, UsagePosting, UsageTerms, held_since
from gputally.model.allocation import Segment
from gputally.model.measured.usage_record import (
    AssignmentHour,
    AssignmentKey,
    AssignmentRecord,
    GpuKey,
    UnallocatedHour,
)
from gputally.model.measured.usage_report import AssignmentReport, Fault, Hour
from gputally.model.pod import PodRecord


class PodLookup(Protocol):
    """What is known of pods besides what agents tell."""

    def pod(self, uid: str) -> PodRecord | None:
        """The pod, also one that is gone."""

    def pods_on(self, node: str) -> Iterable[PodRecord]:
        """Those on the node, also those that are gone."""

    def unmatched_labels(self, assignment: AssignmentRecord) -> tuple[str, str]:
        """The exported (tenant, gpu_model) of a holder that is no known pod."""


class ReportContext(NamedTuple):
    """About a report: whose it is, when it came, by how much the node's clock was ahead of ours then.

    `room` is what its GPUs can have done.
    """

    node: str
    epoch: str
    at_us: int
    ahead_us: int
    room: Room

    @property
    def now_us(self) -> int:
        """When it came, by the node's clock."""
        return self.at_us + self.ahead_us


class AssignmentHours(Struct):
    """A holder with its hours as last told; `told_uid` is its pod's UID if the node tells it."""

    assignment: AssignmentRecord
    told_uid: str = ""
    hours: dict[int, Hour] = field(default_factory=dict)


class PendingRows(Struct):
    """What is to be written to the ledger, and what was left out: how often, by reason, and of which node first why."""

    held: dict[tuple[AssignmentKey, int], AssignmentHour] = field(default_factory=dict)
    unallocated: dict[GpuKey, UnallocatedHour] = field(default_factory=dict)
    faults: dict[Fault, int] = field(default_factory=lambda: dict.fromkeys(Fault, 0))
    faulty: dict[str, Fault] = field(default_factory=dict)

    def left_out(self, fault: Fault, node: str) -> None:
        """An hour that the agent of `node` told, or a holder with all its hours, is not believed."""
        self.faults[fault] += 1
        self.faulty.setdefault(node, fault)

    def clear(self) -> None:
        """All of it is on its way to the ledger."""
        self.held.clear()
        self.unallocated.clear()


class AssignmentUsage:
    """The holders of one node, of this life of its agent and, until it is decided whose they were, of earlier ones."""

    def __init__(self, surroundings: PodLookup, posting: UsagePosting, pending: PendingRows) -> None:
        self.assignments: dict[AssignmentKey, AssignmentHours] = {}
        self._pending = pending
        self._lookup = surroundings
        self._posting = posting
        self._undecided: set[AssignmentKey] = set()

    @property
    def is_undecided(self) -> bool:
        """Whether it is to be found out of any holder whose it is."""
        return bool(self._undecided)

    def restore(self, row: AssignmentHour) -> None:
        """Take up an hour as an earlier process booked it; of one holder the latest comes last."""
        key = row.assignment.key
        held = self.assignments.setdefault(key, AssignmentHours(row.assignment))
        held.assignment = row.assignment
        held.hours[row.hour.start_us] = row.hour
        if row.assignment.pod_uid is None:
            self._undecided.add(key)

    def told(self, assignments: Iterable[AssignmentReport], context: ReportContext) -> None:
        """Take in all that the agent tells of holders."""
        present = {self._told(each, context) for each in assignments}
        for key in self.assignments.keys() - present - self._undecided:
            held = self.assignments.pop(key)
            for start_us in held.hours:
                self._note(held, start_us, is_open=False)

    def decide(self, *, complete_us: int, at_us: int) -> None:
        """Find out whose the holders are. All that the API told before `complete_us` is known."""
        for key in tuple(self._undecided):
            held = self.assignments[key]
            uid = self._owner(held, complete_us)
            if uid is not None:
                self._undecided.discard(key)
                held.assignment = replace(held.assignment, pod_uid=uid)
                self._posting.declare(self._last_terms(held.assignment), at_us=at_us)
                for start_us, hour in held.hours.items():
                    self._book(held, None, hour, at_us=at_us)
                    self._note(held, start_us)

    def close(self) -> None:
        """The agent will not tell of any of it any more."""
        for held in self.assignments.values():
            for start_us in held.hours:
                self._note(held, start_us, is_open=False)
        self.assignments.clear()
        self._undecided.clear()

    def _told(self, told: AssignmentReport, context: ReportContext) -> AssignmentKey:
        key = AssignmentKey(context.epoch, told.device, told.namespace, told.pod, told.container, told.since_us)
        if fault := fault_of_assignment(told, now_us=context.now_us):
            self._pending.left_out(fault, context.node)
            return key
        held = self.assignments.get(key) or self._new(key, told, context)
        has_ended = told.until_us != held.assignment.until_us
        assignment = held.assignment = replace(
            held.assignment,
            gpu=held.assignment.gpu if told.gpu == held.assignment.gpu else told.gpu,
            share=told.share,
            seen_us=told.seen_us,
            until_us=told.until_us,
            ahead_us=context.ahead_us,
        )
        held.told_uid = told.pod_uid
        for hour in told.hours:
            self._hour_told(held, hour, context)
        for start_us in (
            held.hours.keys() - {hour.start_us for hour in told.hours} if assignment.pod_uid is not None else ()
        ):
            self._note(held, start_us, is_open=False)
            del held.hours[start_us]
        for start_us in held.hours if has_ended else ():
            self._note(held, start_us)
        return key

    def _new(self, key: AssignmentKey, told: AssignmentReport, context: ReportContext) -> AssignmentHours:
        key = key._replace(namespace=shared(told.namespace), container=shared(told.container))
        assignment = AssignmentRecord(
            key=key,
            node=context.node,
            gpu=key.device if told.gpu == key.device else told.gpu,
            resource=shared(told.resource),
            share=told.share,
            seen_us=told.seen_us,
            after_us=told.after_us,
            until_us=told.until_us,
            ahead_us=context.ahead_us,
        )
        held = self.assignments[key] = AssignmentHours(assignment)
        self._undecided.add(key)
        return held

    def _hour_told(self, held: AssignmentHours, hour: Hour, context: ReportContext) -> None:
        last = held.hours.get(hour.start_us)
        fault = Fault.FELL if last and _fell(last, hour) else context.room.held(held.assignment.gpu, last, hour)
        if fault:
            self._pending.left_out(fault, context.node)
        elif last != hour:
            held.hours[hour.start_us] = hour
            self._note(held, hour.start_us)
            if held.assignment.pod_uid is not None:
                self._book(held, last, hour, at_us=context.at_us)

    def _owner(self, held: AssignmentHours, complete_us: int) -> str | None:
        """Whose the holder is; None as long as the API may still tell of a pod that it could be.

        The UID a node tells of a static pod is not that of the pod the API tells of, which has its name.
        """
        since_us = held.assignment.key.since_us - held.assignment.ahead_us
        found = self._lookup.pod(held.told_uid) if held.told_uid else None
        if found and found.node != held.assignment.node:
            found = None  # of other nodes an agent has nothing to tell
        if found is None and complete_us >= since_us:
            found = owner(held.assignment, self._lookup.pods_on(held.assignment.node))
        if found:
            return found.uid
        return "" if complete_us >= since_us + TOLERANCE_US else None

    def _book(self, held: AssignmentHours, last: Hour | None, hour: Hour, *, at_us: int) -> None:
        measured = held_since(last, hour, ahead_us=held.assignment.ahead_us)
        segments = self._segments(held.assignment)
        if segments:
            self._posting.held(measured, segments, at_us=at_us)
        else:
            self._posting.unmatched(measured, self._last_terms(held.assignment).labels, at_us=at_us)

    def _last_terms(self, assignment: AssignmentRecord) -> UsageTerms:
        segments = self._segments(assignment)
        if segments:
            return UsageTerms(segments[-1].labels[:3], segments[-1].price)
        return UsageTerms((UNKNOWN, *self._lookup.unmatched_labels(assignment)), None)

    def _segments(self, assignment: AssignmentRecord) -> Sequence[Segment]:
        """Those of the pod for what the kubelet calls the resource, or for all it has if it calls that otherwise."""
        pod = self._lookup.pod(assignment.pod_uid) if assignment.pod_uid else None
        if pod is None:
            return ()
        return [s for s in pod.segments if s.resource == assignment.resource] or pod.segments

    def _note(self, held: AssignmentHours, start_us: int, *, is_open: bool = True) -> None:
        row = AssignmentHour(assignment=held.assignment, hour=held.hours[start_us], open=is_open)
        self._pending.held[held.assignment.key, start_us] = row


def _fell(last: Hour, hour: Hour) -> bool:
    """Whether any amount is lower than was told before, which an agent never does."""
    return (
        hour.to_us < last.to_us
        or hour.measured < last.measured
        or hour.used < last.used
        or hour.burst < last.burst
        or hour.memory < last.memory
        or hour.memory_us < last.memory_us
        or hour.energy < last.energy
    )
