"""Keeps each hour of usage as agents last reported it, of device assignments and unallocated GPUs; posts it once."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, Self

from msgspec import Struct, field
from msgspec.structs import replace

from gputally.accounting.base.compact import shared
from gputally.accounting.usage.bounds import UsageRoom, fault_of_assignment
from gputally.accounting.usage.matching import TOLERANCE_US, owner
from gputally.accounting.usage.posting import UNKNOWN, UsagePosting, UsageTerms, held_since, unallocated_since
from gputally.model.allocation import Segment
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_HOUR, US_PER_SECOND
from gputally.model.usage import (
    AssignmentHour,
    AssignmentKey,
    AssignmentRecord,
    AssignmentReport,
    Fault,
    GpuHour,
    GpuKey,
    GpuReport,
    Hour,
    UnallocatedHour,
    UsageReport,
)

_IDLE_HOURS: Final = 2
_IDLE_LEAST_US: Final = 600 * US_PER_SECOND
_IDLE_SHARE: Final = 50
"""A pod is idle if it used less than one part in this many."""


class PodLookup(Protocol):
    """Information about pods that agents do not have."""

    def pod(self, uid: str) -> PodRecord | None:
        """The pod, also if it is deleted."""

    def pods_on(self, node: str) -> Iterable[PodRecord]:
        """The pods of the node, including deleted ones."""

    def unmatched_labels(self, assignment: AssignmentRecord) -> tuple[str, str]:
        """The exported (tenant, gpu_model) of an assignment to an unknown pod."""


class ReportContext(NamedTuple):
    """The node of a report, its arrival time, and the lead of the node's clock over ours at that time.

    `room` is the maximum that its GPUs can have done, and `starts_us` are the hours of which it has anything. If it
    is not `is_whole`, it lacks what did not change; what ended at or before `journal_start_us`, by the node's clock, is
    in no later report.
    """

    node: str
    epoch: str
    at_us: int
    ahead_us: int
    room: UsageRoom
    starts_us: set[int]
    is_whole: bool
    journal_start_us: int

    @classmethod
    def of(cls, report: UsageReport, room: UsageRoom, *, at_us: int) -> Self:
        """The context of a report that arrived at `at_us`."""
        starts_us = {hour.start_us for each in report.assignments for hour in each.hours}
        starts_us |= {hour.start_us for gpu in report.gpus for hour in gpu.hours}
        return cls(
            node=report.node,
            epoch=report.epoch,
            at_us=at_us,
            ahead_us=report.now_us - at_us,
            room=room,
            starts_us=starts_us,
            is_whole=not report.since,
            journal_start_us=report.journal_start_us,
        )

    @property
    def now_us(self) -> int:
        """The arrival time by the node's clock."""
        return self.at_us + self.ahead_us

    def is_over(self, start_us: int) -> bool:
        """Whether no later report has the hour that starts at `start_us`."""
        return start_us + US_PER_HOUR <= self.journal_start_us


class AssignmentHours(Struct):
    """An assignment with its hours as last reported; `reported_uid` is its pod's UID if the agent knows it."""

    assignment: AssignmentRecord
    reported_uid: str = ""
    hours: dict[int, Hour] = field(default_factory=dict)


class PendingRows(Struct):
    """Rows for the ledger, and rejected data: counts by reason, and the first reason by node."""

    held: dict[tuple[AssignmentKey, int], AssignmentHour] = field(default_factory=dict)
    unallocated: dict[GpuKey, UnallocatedHour] = field(default_factory=dict)
    faults: dict[Fault, int] = field(default_factory=lambda: dict.fromkeys(Fault, 0))
    faulty: dict[str, Fault] = field(default_factory=dict)

    @property
    def fault_count(self) -> int:
        """How often anything was rejected."""
        return sum(self.faults.values())

    def left_out(self, fault: Fault, node: str) -> None:
        """Count an hour, or an assignment with all its hours, of the agent of `node` as rejected."""
        self.faults[fault] += 1
        self.faulty.setdefault(node, fault)

    def drain(self) -> tuple[dict[tuple[AssignmentKey, int], AssignmentHour], dict[GpuKey, UnallocatedHour]]:
        """Everything since the last call, for the ledger."""
        drained = self.held, self.unallocated
        self.held, self.unallocated = {}, {}
        return drained


class AssignmentUsage:
    """The assignments of one node, of its agent's present run and of earlier runs until they are matched."""

    def __init__(self, lookup: PodLookup, posting: UsagePosting, pending: PendingRows) -> None:
        self.assignments: dict[AssignmentKey, AssignmentHours] = {}
        self._pending = pending
        self._lookup = lookup
        self._posting = posting
        self._undecided: set[AssignmentKey] = set()

    @property
    def is_undecided(self) -> bool:
        """Whether the pod of any assignment is not known yet."""
        return bool(self._undecided)

    def restore(self, row: AssignmentHour) -> None:
        """Restore an hour as an earlier process posted it; hours of one assignment come in order."""
        key = row.assignment.key
        held = self.assignments.setdefault(key, AssignmentHours(row.assignment))
        held.assignment = row.assignment
        held.hours[row.hour.start_us] = row.hour
        if row.assignment.pod_uid is None:
            self._undecided.add(key)

    def reported(self, assignments: Iterable[AssignmentReport], context: ReportContext) -> None:
        """Process all assignments of a report."""
        found = {self._key(each, context): each for each in assignments}
        possible = {key: held for key, each in found.items() if (held := self._observe(key, each, context))}
        self._add_counted(context)
        for key, held in possible.items():
            for hour in found[key].hours:
                self._observe_hour(held, hour, context)
        if context.is_whole:
            self._close_missing(found, possible)
        else:
            self._close_over(context, found)

    def decide(self, *, complete_us: int, at_us: int) -> None:
        """Match assignments with pods. All pod events before `complete_us` are known."""
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

    def is_idle(self, pod_uid: str) -> bool:
        """Whether the pod used next to nothing of what was measured in its last two hours, ten minutes at least."""
        measured = used = needed = 0
        for held in self.assignments.values():
            if held.assignment.pod_uid == pod_uid:
                needed += held.assignment.share * _IDLE_LEAST_US
                for start_us in sorted(held.hours)[-_IDLE_HOURS:]:
                    measured += held.hours[start_us].measured
                    used += held.hours[start_us].used
        return needed > 0 and measured >= needed and used * _IDLE_SHARE < measured

    def close(self) -> None:
        """The agent will not report any of them again."""
        for held in self.assignments.values():
            for start_us in held.hours:
                self._note(held, start_us, is_open=False)
        self.assignments.clear()
        self._undecided.clear()

    @staticmethod
    def _key(report: AssignmentReport, context: ReportContext) -> AssignmentKey:
        return AssignmentKey(
            context.epoch, report.device, report.namespace, report.pod, report.container, report.since_us
        )

    def _observe(self, key: AssignmentKey, report: AssignmentReport, context: ReportContext) -> AssignmentHours | None:
        """The assignment with what the report says of it, except its hours; None if that is impossible."""
        if fault := fault_of_assignment(report, now_us=context.now_us):
            self._pending.left_out(fault, context.node)
            return None
        held = self.assignments.get(key) or self._new(key, report, context)
        has_ended = report.until_us != held.assignment.until_us
        held.assignment = replace(
            held.assignment,
            gpu=held.assignment.gpu if report.gpu == held.assignment.gpu else report.gpu,
            share=report.share,
            seen_us=report.seen_us,
            until_us=report.until_us,
            ahead_us=context.ahead_us,
        )
        held.reported_uid = report.pod_uid
        for start_us in held.hours if has_ended else ():
            self._note(held, start_us)
        return held

    def _add_counted(self, context: ReportContext) -> None:
        """Add to the room what was counted before in the hours of a report."""
        for key, held in self.assignments.items():
            if key.epoch == context.epoch:
                for start_us in context.starts_us:
                    if hour := held.hours.get(start_us):
                        context.room.add_held(held.assignment.gpu, hour)

    def _close_missing(
        self, found: Mapping[AssignmentKey, AssignmentReport], possible: Mapping[AssignmentKey, AssignmentHours]
    ) -> None:
        """Close what a whole report lacks; what is undecided stays until it is decided."""
        for key in self.assignments.keys() - found.keys() - self._undecided:
            held = self.assignments.pop(key)
            self._close_hours(held, held.hours)
        for key in possible.keys() - self._undecided:
            self._close_hours(possible[key], possible[key].hours.keys() - {hour.start_us for hour in found[key].hours})

    def _close_over(self, context: ReportContext, found: Container[AssignmentKey]) -> None:
        """Close what no later report has; what is undecided stays until it is decided.

        Each report has all current assignments: one that it lacks has ended and left the journal since the last one.
        """
        for key in self.assignments.keys() - self._undecided:
            held = self.assignments[key]
            until_us = held.assignment.until_us
            has_left = key not in found if until_us is None else until_us <= context.journal_start_us
            if key.epoch != context.epoch or has_left:
                del self.assignments[key]
                self._close_hours(held, held.hours)
            else:
                self._close_hours(held, filter(context.is_over, held.hours))

    def _close_hours(self, held: AssignmentHours, starts_us: Iterable[int]) -> None:
        for start_us in tuple(starts_us):
            self._note(held, start_us, is_open=False)
            del held.hours[start_us]

    def _new(self, key: AssignmentKey, report: AssignmentReport, context: ReportContext) -> AssignmentHours:
        key = key._replace(namespace=shared(report.namespace), container=shared(report.container))
        assignment = AssignmentRecord(
            key=key,
            node=context.node,
            gpu=key.device if report.gpu == key.device else report.gpu,
            resource=shared(report.resource),
            share=report.share,
            seen_us=report.seen_us,
            after_us=report.after_us,
            until_us=report.until_us,
            ahead_us=context.ahead_us,
        )
        held = self.assignments[key] = AssignmentHours(assignment)
        self._undecided.add(key)
        return held

    def _observe_hour(self, held: AssignmentHours, hour: Hour, context: ReportContext) -> None:
        last = held.hours.get(hour.start_us)
        if last == hour:
            return
        fault = Fault.FELL if last and _fell(last, hour) else context.room.held(held.assignment.gpu, last, hour)
        if fault:
            self._pending.left_out(fault, context.node)
        else:
            held.hours[hour.start_us] = hour
            self._note(held, hour.start_us)
            if held.assignment.pod_uid is not None:
                self._book(held, last, hour, at_us=context.at_us)

    def _owner(self, held: AssignmentHours, complete_us: int) -> str | None:
        """The pod of the assignment; None while the API server may still report a pod that matches.

        For a static pod, the node reports another UID than the API server; the name is the same.
        """
        since_us = held.assignment.key.since_us - held.assignment.ahead_us
        found = self._lookup.pod(held.reported_uid) if held.reported_uid else None
        if found and found.node != held.assignment.node:
            found = None  # agents report only pods of their own node
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
        """The pod's segments for the kubelet's resource name, or all of them if no segment has that name."""
        pod = self._lookup.pod(assignment.pod_uid) if assignment.pod_uid else None
        if pod is None:
            return ()
        return [s for s in pod.segments if s.resource == assignment.resource] or pod.segments

    def _note(self, held: AssignmentHours, start_us: int, *, is_open: bool = True) -> None:
        row = AssignmentHour(assignment=held.assignment, hour=held.hours[start_us], open=is_open)
        self._pending.held[held.assignment.key, start_us] = row


def _fell(last: Hour, hour: Hour) -> bool:
    """Whether any amount is lower than reported before, which cannot happen."""
    return (
        hour.to_us < last.to_us
        or hour.measured < last.measured
        or hour.used < last.used
        or hour.burst < last.burst
        or hour.memory < last.memory
        or hour.memory_us < last.memory_us
        or hour.energy < last.energy
    )


class UnallocatedUsage:
    """Hours by GPU, of the present run of the node's agent."""

    def __init__(self, posting: UsagePosting, pending: PendingRows) -> None:
        self._rows: dict[GpuKey, UnallocatedHour] = {}
        self._posting = posting
        self._pending = pending

    def restore(self, row: UnallocatedHour) -> None:
        """Restore an hour as an earlier process posted it."""
        self._rows[row.key] = row

    def reported(self, gpus: Iterable[GpuReport], context: ReportContext, labels: tuple[str, str]) -> None:
        """Process all GPUs of a report; `labels` are the exported (gpu_model, pool) of their node."""
        present = set[GpuKey]()
        unattributed = energy = 0
        for gpu in gpus:
            reported_us = gpu.watermark_us - context.ahead_us
            for hour in gpu.hours:
                key = GpuKey(context.epoch, gpu.uuid, hour.start_us)
                present.add(key)
                more = self._observe_hour(key, hour, context, reported_us=reported_us)
                unattributed, energy = unattributed + more[0], energy + more[1]
        self._posting.unallocated(unattributed, energy, labels, at_us=context.at_us)
        over = [key for key in self._rows if context.is_over(key.start_us)]
        self._close(self._rows.keys() - present if context.is_whole else over)

    def add_counted(self, context: ReportContext) -> None:
        """Add to the room what was counted before in the hours of a report."""
        for key, row in self._rows.items():
            if key.start_us in context.starts_us and key.epoch == context.epoch:
                context.room.add_unallocated(key.gpu, row.hour)

    def close(self) -> None:
        """The agent will not report any of it again."""
        self._close(set(self._rows))

    def _close(self, keys: Iterable[GpuKey]) -> None:
        for key in keys:
            row = self._rows.pop(key)
            self._pending.unallocated[key] = UnallocatedHour(key=key, node=row.node, hour=row.hour, open=False)

    def _observe_hour(self, key: GpuKey, hour: GpuHour, context: ReportContext, *, reported_us: int) -> tuple[int, ...]:
        """What the hour adds since the accounting start: used time, energy."""
        row = self._rows.get(key)
        last = row.hour if row else None
        if last == hour:
            return 0, 0
        fell = last and (hour.unattributed < last.unattributed or hour.energy < last.energy)
        if fault := Fault.FELL if fell else context.room.unallocated(key.gpu, last, hour):
            self._pending.left_out(fault, context.node)
            return 0, 0
        self._rows[key] = self._pending.unallocated[key] = UnallocatedHour(key=key, node=context.node, hour=hour)
        return self._posting.since_opening(
            unallocated_since(last, hour, reported_us=reported_us, ahead_us=context.ahead_us)
        )
