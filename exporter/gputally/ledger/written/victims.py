"""Victims, for whom they were preempted, the work that this destroyed, and pending deliveries."""

import json
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

import msgspec

from gputally.accounting.changes import Changes
from gputally.ledger.tables.statements import upsert
from gputally.ledger.tables.table import Row
from gputally.ledger.tables.victims import (
    LOST_PODS,
    LOST_WORK,
    OF_PREEMPTION,
    OF_PREEMPTOR,
    OF_VICTIM,
    PREEMPTION_DELIVERIES,
    VICTIM_COLUMNS,
    VICTIMS,
)
from gputally.model.disruptions import Preemption, Preemptor

UPSERT_VICTIM: Final = upsert(VICTIMS, fields=("recorded_us", *VICTIM_COLUMNS))
_NO_PREEMPTION: Final = (None,) * len((*OF_PREEMPTION, *OF_PREEMPTOR, "preemptor_pods"))
_own, _by, _of_preemptor = attrgetter(*OF_VICTIM), attrgetter(*OF_PREEMPTION), attrgetter(*OF_PREEMPTOR.values())
INSERT_DELIVERY: Final = f"{upsert(PREEMPTION_DELIVERIES)} WHERE preemption_deliveries.result = 'withdrawn'"


def victims(changes: Changes) -> Iterator[Row]:
    """Victims as last known."""
    for each in filter(None, changes.victims.values()):
        yield changes.at_us, *_own(each), *_preemption(each.by)


def withdrawn_victims(changes: Changes) -> Iterator[Row]:
    """Pods that were no victims after all."""
    return ((uid,) for uid, each in changes.victims.items() if each is None)


def _preemption(by: Preemption | None) -> Row:
    """The columns of a preemption that is counted, else NULL."""
    if by is None or not by.preemptor_tier:
        return _NO_PREEMPTION
    pods = by.preemptor_pods if by.workload and by.workload.uid else None  # KAI names no UID: its pods are not known
    return *_by(by), *_preemptor(by.preemptor), None if pods is None else json.dumps(pods)


def _preemptor(of: Preemptor | None) -> Row:
    """NULL while it is not known; of a pod, what only a workload has is NULL."""
    if of is None:
        return False, *[None] * (len(OF_PREEMPTOR) - 1)
    unknown: list[str] = [] if of.tier else ["preemptor_tenant"]
    if of.priority is None:
        unknown += ["preemptor_class", "preemptor_may_preempt"]
    if not of.kind:
        unknown += ["preemptor_kind", "preemptor_quantity"]
    known = zip(OF_PREEMPTOR, _of_preemptor(of), strict=True)
    return tuple([None if column in unknown else value for column, value in known])


def lost_work(changes: Changes) -> Iterator[Row]:
    """New and corrected losses."""
    for each in filter(None, changes.lost_work.values()):
        yield LOST_WORK.new(
            victim_uid=each.victim_uid,
            recorded_us=changes.at_us,
            gpu_time=str(each.gpu_time),
            costs=_pairs(each.costs),
            basis=each.basis.value,
            checkpoint_us=each.checkpoint_us,
            members=each.members,
            stalled_gpu_time=str(each.stalled_gpu_time),
            at_intervals=_pairs(each.at_intervals),
            is_final=each.is_final,
        )


def withdrawn_lost_work(changes: Changes) -> Iterator[Row]:
    """The pods that proved to be no victims."""
    return ((uid,) for uid, each in changes.lost_work.items() if each is None)


def lost_pods(changes: Changes) -> Iterator[Row]:
    """The pods of these losses."""
    for each in filter(None, changes.lost_work.values()):
        for pod in each.pods:
            yield LOST_PODS.new(pod.uid, each.victim_uid, pod.from_us, pod.to_us, pod.basis.value)


def revised_lost_work(changes: Changes) -> Iterator[Row]:
    """The victims whose pods are replaced or removed."""
    return ((uid,) for uid in changes.lost_work)


def _pairs(pairs: Sequence[tuple[str | int, int]]) -> str:
    return msgspec.json.encode([[key, str(amount)] for key, amount in pairs]).decode()


def deliveries(changes: Changes) -> Iterator[Row]:
    """New ones. A row that exists stays as it is, unless the preemption was withdrawn and is reported again."""
    for each in filter(None, changes.victims.values()):
        if each.announced:
            yield PREEMPTION_DELIVERIES.new(each.job_preemption, queued_us=changes.at_us, result=None, finished_us=None)
