"""The formulas: what running time since a checkpoint amounts to."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gputally.accounting.checkpoints.last_checkpoint import last_checkpoint
from gputally.accounting.lost_work.pod_work import PodWork
from gputally.accounting.totals.series import Labels
from gputally.accounting.totals.total import Total
from gputally.model.disruptions.disruption import PREEMPTIONS, Cause
from gputally.model.units import US_PER_SECOND
from gputally.model.work.checkpoint import WorkCheckpoint
from gputally.model.work.duration import duration_text
from gputally.model.work.lost_work import LostPod, LostWork, WorkSpan

Amounts = dict[tuple[Total, Labels], int]
"""What is counted, by family and labels."""


def checkpoint_before_end(work: PodWork, shared: Iterable[WorkCheckpoint]) -> WorkCheckpoint:
    """The last checkpoint of an ended pod; `shared` are those of its group."""
    start_us = work.end_us if work.started_us is None else min(work.started_us, work.end_us)
    stated = (*work.saved, *shared)
    return last_checkpoint(stated, start_us=start_us, end_us=work.end_us, interval_us=work.interval_us)


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
    ran_us = 0 if work.started_us is None else max(0, work.end_us - work.started_us)
    return work.end_us - ran_us % interval_us


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


def lost_work(
    victim: PodWork,
    lost: Mapping[str, tuple[PodWork, WorkCheckpoint]],
    *,
    stalled_gpu_time: int,
    is_final: bool,
    what_ifs_us: Iterable[int],
    is_preemption: bool = True,
) -> LostWork:
    """The loss of the disruption of `victim`: `lost` are all pods that lost work, itself included, by UID.

    `what_ifs_us` are the checkpoint intervals for which it is computed, too.
    """
    costs: dict[str, int] = {}
    for work, checkpoint in lost.values():
        for currency, cost in costs_of_spans(work.spans, from_us=checkpoint.at_us).items():
            costs[currency] = costs.get(currency, 0) + cost
    own = lost[victim.uid][1]
    return LostWork(
        victim_uid=victim.uid,
        gpu_time=sum(gpu_time_of(work.spans, from_us=checkpoint.at_us) for work, checkpoint in lost.values()),
        costs=tuple(sorted(costs.items())),
        basis=own.source,
        checkpoint_us=own.at_us,
        members=len(lost),
        pods=tuple(_lost_pods(lost)) if is_preemption else (),
        stalled_gpu_time=stalled_gpu_time,
        at_intervals=tuple((each, _gpu_time_at(each, lost.values())) for each in what_ifs_us),
        is_final=is_final,
    )


def _lost_pods(lost: Mapping[str, tuple[PodWork, WorkCheckpoint]]) -> Iterator[LostPod]:
    """Those with any running time since their checkpoint."""
    for uid, (work, checkpoint) in lost.items():
        starts = [each.start_us for each in work.spans if each.end_us > checkpoint.at_us]
        if starts:
            yield LostPod(uid, max(checkpoint.at_us, min(starts)), work.end_us, checkpoint.source)


def _gpu_time_at(interval_us: int, lost: Iterable[tuple[PodWork, WorkCheckpoint]]) -> int:
    """The GPU-time that would be lost with a checkpoint every `interval_us` since the start of each pod."""
    return sum(gpu_time_of(work.spans, from_us=saved_by(work, interval_us)) for work, _ in lost)
