"""Preemptions of jobs: the pods that were preempted together, and when the record of that is delivered."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.ledger.preemption_records import VictimRecords
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import Window
from gputally.model.disruptions import CLOSED_US, JOB_PREEMPTIONS, OWN_JOB, QUEUE_CLOSED_US, QUEUE_TOGETHER_US, Cause
from gputally.model.lost_work import LostWork
from gputally.model.units import US_PER_HOUR, US_PER_SECOND
from gputally.reports.disruptions import DisruptionLine, read_disruptions, victim_values
from gputally.reports.query import ReportQuery

FOLLOWED_US: Final = US_PER_HOUR
"""How long the accounting waits for what follows a preemption."""
_OF_PODS: Final = ("pod", "node")
"""Columns in which the pods of a job differ."""
SETTLED_US: Final = 600 * US_PER_SECOND
"""How long after the release of the last pod to wait for what is still missing."""


class JobLoss(Struct, frozen=True, kw_only=True):
    """What all victims lost together, see `LostWork`; `at_intervals` is the loss with a checkpoint every so many µs."""

    gpu_time: int
    costs: dict[str, int]
    bases: tuple[str, ...]
    is_upper_bound: bool
    pods: int
    stalled_gpu_time: int
    at_intervals: dict[int, int]


class JobPreemption(Struct, frozen=True, dict=True):
    """The victims in the order of their decisions, at least one."""

    victims: Sequence[DisruptionLine]

    @property
    def id(self) -> str:
        """Identifies it: the UID of the pod that was observed first."""
        return _id_of(self.victims[0])

    @property
    def is_by_queue(self) -> bool:
        """Whether a queue preempted the job for another workload."""
        return self.victims[0].victim.cause is Cause.QUEUE_PREEMPTION

    @property
    def decided_us(self) -> int:
        """When the first pod was chosen."""
        return self.victims[0].victim.decided_us

    @property
    def last_decided_us(self) -> int:
        """When the last pod was chosen."""
        return self.victims[-1].victim.decided_us

    @property
    def released_us(self) -> int | None:
        """When the last pod had released its GPUs; None before."""
        return _last([each.victim.released_us for each in self.victims])

    @property
    def replaced_us(self) -> int | None:
        """When the replacements of all pods ran; None before."""
        return _last([each.victim.replaced_us for each in self.victims])

    @cached_property
    def loss(self) -> JobLoss | None:
        """What is known of the lost work; None if nothing is."""
        known = [each.lost for each in self.victims if each.lost]
        return total_loss(known) if known else None

    @property
    def is_permitted(self) -> bool | None:
        """Whether the priorities permit all of it; None if that is not known of each pod."""
        found = [each.victim.by.is_permitted if each.victim.by else None for each in self.victims]
        return None if None in found else all(found)

    @property
    def is_complete(self) -> bool:
        """Whether preemptors, ends and losses of all pods are known."""
        return self.released_us is not None and all(
            each.victim.by and each.lost and each.lost.is_final for each in self.victims
        )

    def is_final(self, *, now_us: int) -> bool:
        """Whether it will not change any more: it is complete, or the accounting does not wait for more."""
        return self.is_complete or now_us >= (self.released_us or self.last_decided_us) + FOLLOWED_US


def read_job_preemptions(
    reader: LedgerReader, query: ReportQuery, *, until_us: int | None = None
) -> Iterator[JobPreemption]:
    """Preemptions that began in the window, by time, that match all filters: for pods and nodes, if any victim does.

    A preemption is that of one tier and tenant, so a filter by these shows all of it or nothing. For `until_us` and
    errors see `read_disruptions`.
    """
    window = query.window
    wide = Window(window.start_us - 2 * QUEUE_TOGETHER_US, window.end_us + 2 * QUEUE_TOGETHER_US)
    filters = tuple(each for each in query.filters if each.column not in _OF_PODS)
    wider = replace(query, window=wide, filters=filters)
    lines = read_disruptions(reader, wider, JOB_PREEMPTIONS, until_us=until_us)
    for found in grouped(lines):
        is_included = any(query.includes(victim_values(each.victim)) for each in found.victims)
        if is_included and window.start_us <= found.decided_us < window.end_us:
            yield found


def of_records(records: VictimRecords) -> Iterator[JobPreemption]:
    """The preemptions of jobs that these victims belong to."""
    return grouped(DisruptionLine(each, records.lost_work.get(each.victim_uid)) for each in records.victims)


def grouped(lines: Iterable[DisruptionLine]) -> Iterator[JobPreemption]:
    """The lines, which are in the order of time, by preemption of a job, in the order of the first one of each."""
    found: dict[str, list[DisruptionLine]] = {}
    for line in lines:
        found.setdefault(_id_of(line), []).append(line)
    return map(JobPreemption, found.values())


def _id_of(line: DisruptionLine) -> str:
    """Ledgers of before have none of victims of queues: each is one of its own."""
    return line.victim.job_preemption or line.victim.victim_uid


def total_loss(known: Sequence[LostWork]) -> JobLoss:
    """What several victims lost together."""
    costs: dict[str, int] = {}
    at_intervals = dict(known[0].at_intervals) if known else {}
    for each in known:
        others = dict(each.at_intervals)
        at_intervals = {every_us: 0 for every_us in at_intervals if every_us in others}
    for each in known:
        for currency, cost in each.costs:
            costs[currency] = costs.get(currency, 0) + cost
        for every_us, gpu_time in each.at_intervals:
            if every_us in at_intervals:
                at_intervals[every_us] += gpu_time
    return JobLoss(
        gpu_time=sum(each.gpu_time for each in known),
        costs=dict(sorted(costs.items())),
        bases=tuple(sorted({each.basis.value for each in known})),
        is_upper_bound=any(each.is_upper_bound for each in known),
        pods=sum(each.members for each in known),
        stalled_gpu_time=sum(each.stalled_gpu_time for each in known),
        at_intervals=at_intervals,
    )


def _last(times: Sequence[int | None]) -> int | None:
    known = [each for each in times if each is not None]
    return max(known) if len(known) == len(times) else None


def is_due(found: JobPreemption, *, queued_us: int, pods_complete_us: int, now_us: int) -> bool:
    """Whether to deliver the record now.

    First no further pod may be added. Then it is complete and its pods are replaced, or nothing more is awaited: ten
    minutes after all pods have released their GPUs, and an hour after the decision if one does not. Both count from
    `queued_us`, when it was recorded, if that was later. A job that its queue stopped may wait for hours.
    """
    if pods_complete_us < _closed_us(found, queued_us):
        return False
    if found.is_complete and all(map(_is_replaced, found.victims)):
        return True
    released_us = found.released_us
    if released_us is None:
        return now_us >= max(queued_us, found.last_decided_us) + FOLLOWED_US
    return now_us >= max(queued_us, released_us) + SETTLED_US


def _closed_us(found: JobPreemption, queued_us: int) -> int:
    """Once the watch of pods is complete up to then, no further pod is added, see `JobPreemptions`."""
    if found.is_by_queue:
        return max(queued_us, found.last_decided_us) + QUEUE_CLOSED_US
    return found.last_decided_us + CLOSED_US


def _is_replaced(each: DisruptionLine) -> bool:
    victim = each.victim
    return victim.replaced_us is not None or victim.job_kind == OWN_JOB or victim.cause is Cause.QUEUE_PREEMPTION
