"""Measures the work of an ended pod: its running time, what a checkpoint saved, and what the rest amounts to."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from gputally.accounting.facts.outcome import outcome_of
from gputally.accounting.jobs.checkpoints import last_checkpoint
from gputally.accounting.totals.series import Labels
from gputally.accounting.totals.total import Total
from gputally.frameworks.groups import PodGroup, attempt_of
from gputally.model.allocation import Outcome, Segment, State
from gputally.model.disruptions import PREEMPTIONS, Cause
from gputally.model.lost_work import CheckpointSource, LostPod, LostWork, PodCheckpoint, WorkCheckpoint, WorkSpan
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND, duration_text

_KILLED = 137
"""The exit code after SIGKILL: the grace period was over before the work was saved."""
_OWN = (Outcome.SUCCEEDED, Outcome.FAILED)
Amounts = dict[tuple[Total, Labels], int]
"""What is counted, by family and labels."""


class PodWork(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What is known of an ended pod; times are µs.

    `spans` is its running time, also while it terminates, by time and resource; the time before the first start of a
    container is no work, and without `has_work`, as of a pod that serves, there are none. `ended_itself` says that its
    end was not caused by its deletion: it `succeeded` or failed. `attempt` counts the restarts of its group. Since the
    last restart of its containers it worked from `resumed_us` on, 0 without one. `saved` are the checkpoints that it
    stated, or declares for SIGTERM.
    """

    uid: str
    group: PodGroup | None = None
    attempt: int = 0
    created_us: int
    started_us: int | None
    requested_us: int | None
    end_us: int
    ended_itself: bool = False
    succeeded: bool = False
    has_work: bool = True
    spans: tuple[WorkSpan, ...] = ()
    saved: tuple[WorkCheckpoint, ...] = ()
    interval_us: int | None = None
    resumed_us: int = 0

    @property
    def worked_from_us(self) -> int:
        """Since when its last work was done: what it did before its containers restarted was lost then."""
        start_us = self.end_us if self.started_us is None else self.started_us
        return min(max(start_us, self.resumed_us), self.end_us)

    @property
    def stated(self) -> list[WorkCheckpoint]:
        """The checkpoints that it stated, which its group shares."""
        return [each for each in self.saved if each.source is not CheckpointSource.SIGTERM]


def work_of(
    record: PodRecord,
    checkpoint: PodCheckpoint,
    *,
    group: PodGroup | None,
    interval_us: int | None,
    has_work: bool,
    resumed_us: int | None = None,
) -> PodWork | None:
    """The work of a pod, None before its end is known. `interval_us` is that of its tier, if it declares none.

    If its containers have restarted, they run since `resumed_us`.
    """
    if record.end_us is None:
        return None
    outcome = outcome_of(record)
    return PodWork(
        uid=record.uid,
        group=group,
        attempt=attempt_of(record),
        created_us=record.created_us,
        started_us=record.started_us,
        requested_us=record.deletion_us,
        end_us=record.end_us,
        ended_itself=outcome in _OWN,
        succeeded=outcome is Outcome.SUCCEEDED,
        has_work=has_work,
        spans=merged(spans_of(record, until_us=record.end_us)) if has_work else (),
        saved=tuple(_saved(record, checkpoint)),
        interval_us=checkpoint.interval_us or interval_us,
        resumed_us=resumed_us or 0,
    )


def spans_of(record: PodRecord, *, until_us: int) -> Iterator[WorkSpan]:
    """The running time of a pod up to `until_us`; while its gang was incomplete, it did not work."""
    for each in record.segments:
        if record.started_us is not None and each.state is not State.GANG_WAIT:
            start_us = max(each.start_us, record.started_us)
            end_us = until_us if each.end_us is None else min(each.end_us, until_us)
            if start_us < end_us:
                yield _span(each, start_us, end_us)


def _span(segment: Segment, start_us: int, end_us: int) -> WorkSpan:
    payer = segment.labels[0], segment.labels[1]
    return WorkSpan(start_us=start_us, end_us=end_us, quantity=segment.quantity, payer=payer, price=segment.price)


def merged(spans: Iterable[WorkSpan]) -> tuple[WorkSpan, ...]:
    """Spans that continue each other become one."""
    found: list[WorkSpan] = []
    for each in spans:
        last = found[-1] if found else None
        if last and (last.end_us, last.quantity, last.payer, last.price) == (
            each.start_us,
            each.quantity,
            each.payer,
            each.price,
        ):
            found[-1] = WorkSpan(
                start_us=last.start_us,
                end_us=each.end_us,
                quantity=each.quantity,
                payer=each.payer,
                price=each.price,
            )
        else:
            found.append(each)
    return tuple(found)


def _saved(record: PodRecord, checkpoint: PodCheckpoint) -> Iterator[WorkCheckpoint]:
    if checkpoint.stated:
        yield checkpoint.stated
    result = record.result
    if checkpoint.saves_on_sigterm and record.deletion_us is not None and result and result.exit_code != _KILLED:
        yield WorkCheckpoint(at_us=record.deletion_us, source=CheckpointSource.SIGTERM)


def checkpoint_before_end(work: PodWork, shared: Iterable[WorkCheckpoint]) -> WorkCheckpoint:
    """The last checkpoint of an ended pod; `shared` are those of its group."""
    if not work.has_work:
        return WorkCheckpoint(at_us=work.end_us, source=CheckpointSource.NO_WORK)
    stated = (*work.saved, *shared)
    return last_checkpoint(stated, start_us=work.worked_from_us, end_us=work.end_us, interval_us=work.interval_us)


def gpu_time_of(spans: Iterable[WorkSpan], *, from_us: int) -> int:
    """The GPU-time (µs·µGPU) of the spans from `from_us` on."""
    return sum(each.quantity * max(0, each.end_us - max(each.start_us, from_us)) for each in spans)


def costs_of_spans(spans: Iterable[WorkSpan], *, from_us: int) -> dict[str, int]:
    """The exact cost (see `Price.cost`) of the spans from `from_us` on, by currency; 0 if all was before."""
    found: dict[str, int] = {}
    for each in spans:
        gpu_time = each.quantity * max(0, each.end_us - max(each.start_us, from_us))
        if each.price:
            found[each.price.currency] = found.get(each.price.currency, 0) + each.price.cost(gpu_time)
    return found


def loss_amounts(
    work: PodWork, checkpoint: WorkCheckpoint, *, cause: Cause, from_us: int, what_ifs_us: Iterable[int]
) -> Amounts:
    """What the loss of a pod adds to the counters, which exclude everything before `from_us`.

    `what_ifs_us` are the checkpoint intervals for which the loss is computed, too.
    """
    found: Amounts = {}
    for payer in {each.payer for each in work.spans}:
        spans = [each for each in work.spans if each.payer == payer]
        lost = gpu_time_of(spans, from_us=max(checkpoint.at_us, from_us))
        costs = costs_of_spans(spans, from_us=max(checkpoint.at_us, from_us))
        found[Total.DISRUPTION_LOST, (*payer, cause.value)] = lost
        found |= {(Total.DISRUPTION_LOST_COST, (*payer, cause.value, each)): cost for each, cost in costs.items()}
        if cause in PREEMPTIONS:
            found[Total.LOST, (*payer, checkpoint.source.value)] = lost
            found |= {(Total.LOST_COST, (*payer, each)): cost for each, cost in costs.items()}
            for interval_us in what_ifs_us:
                name, saved_us = duration_text(interval_us // US_PER_SECOND), max(from_us, saved_by(work, interval_us))
                found[Total.LOST_AT_INTERVAL, (*payer, name)] = gpu_time_of(spans, from_us=saved_us)
    return {key: amount for key, amount in found.items() if amount}


def saved_by(work: PodWork, interval_us: int) -> int:
    """The last checkpoint (µs), if there were one every `interval_us` since the start."""
    return work.end_us - (work.end_us - work.worked_from_us) % interval_us


def stall_amounts(spans: Iterable[WorkSpan], *, from_us: int) -> Amounts:
    """What stalled members add to the counters."""
    found: Amounts = {}
    for each in spans:
        key = Total.STALLED, each.payer
        found[key] = found.get(key, 0) + gpu_time_of((each,), from_us=from_us)
    return {key: amount for key, amount in found.items() if amount}


def within(spans: Iterable[WorkSpan], stalls: Sequence[tuple[int, int]]) -> list[WorkSpan]:
    """The parts of `spans` inside any of the disjoint `stalls`."""
    return [
        WorkSpan(start_us=start_us, end_us=end_us, quantity=each.quantity, payer=each.payer, price=each.price)
        for each in spans
        for from_us, to_us in stalls
        if (start_us := max(each.start_us, from_us)) < (end_us := min(each.end_us, to_us))
    ]


def union(stalls: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping stalls as disjoint ones, in order."""
    found: list[tuple[int, int]] = []
    for from_us, to_us in sorted(stalls):
        if found and from_us <= found[-1][1]:
            found[-1] = found[-1][0], max(to_us, found[-1][1])
        elif from_us < to_us:
            found.append((from_us, to_us))
    return found


def lost_work(  # noqa: PLR0913 - what a loss depends on
    victim: PodWork,
    lost: Mapping[str, tuple[PodWork, WorkCheckpoint]],
    *,
    from_us: int,
    stalled_gpu_time: int,
    is_final: bool,
    what_ifs_us: Iterable[int],
    is_preemption: bool = True,
) -> LostWork:
    """The loss of the disruption of `victim`: `lost` are all pods that lost work by it, itself included, by UID.

    What was before `from_us` does not count, as in the counters. `what_ifs_us` are the checkpoint intervals for which
    it is computed, too.
    """
    costs: dict[str, int] = {}
    for work, checkpoint in lost.values():
        for currency, cost in costs_of_spans(work.spans, from_us=max(checkpoint.at_us, from_us)).items():
            costs[currency] = costs.get(currency, 0) + cost
    own = lost[victim.uid][1]
    gpu_times = {uid: gpu_time_of(work.spans, from_us=max(each.at_us, from_us)) for uid, (work, each) in lost.items()}
    return LostWork(
        victim_uid=victim.uid,
        gpu_time=sum(gpu_times.values()),
        costs=tuple(sorted(costs.items())),
        basis=_basis(own.source, {lost[uid][1].source for uid, gpu_time in gpu_times.items() if gpu_time}),
        checkpoint_us=own.at_us,
        members=sum(work.has_work for work, _ in lost.values()),
        pods=tuple(_lost_pods(lost, from_us)) if is_preemption else (),
        stalled_gpu_time=stalled_gpu_time,
        at_intervals=tuple((each, _gpu_time_at(each, lost.values(), from_us)) for each in what_ifs_us),
        is_final=is_final,
    )


def _basis(own: CheckpointSource, of_lost: AbstractSet[CheckpointSource]) -> CheckpointSource:
    """How the checkpoint of the victim is known, unless only others lost work, or one that states none did."""
    if CheckpointSource.START in of_lost:
        return CheckpointSource.START
    return own if own in of_lost or not of_lost else min(of_lost)


def _lost_pods(lost: Mapping[str, tuple[PodWork, WorkCheckpoint]], from_us: int) -> Iterator[LostPod]:
    """The pods that ran after their last checkpoint, with the time that each lost."""
    for uid, (work, checkpoint) in lost.items():
        saved_us = max(checkpoint.at_us, from_us)
        starts = [each.start_us for each in work.spans if each.end_us > saved_us]
        if starts:
            yield LostPod(uid, max(saved_us, min(starts)), work.end_us, checkpoint.source)


def _gpu_time_at(interval_us: int, lost: Iterable[tuple[PodWork, WorkCheckpoint]], from_us: int) -> int:
    """The GPU-time that would be lost with a checkpoint every `interval_us` since the start of each pod."""
    return sum(gpu_time_of(work.spans, from_us=max(from_us, saved_by(work, interval_us))) for work, _ in lost)
