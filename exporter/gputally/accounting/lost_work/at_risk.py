"""The work that a preemption of all running pods would destroy now: lines a + b·t by tier and tenant."""

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from msgspec import Struct

from gputally.accounting.jobs.checkpoints import Checkpoints, declared_interval, has_work, last_checkpoint
from gputally.accounting.lost_work.container_restarts import WAITING, ContainerRestarts
from gputally.accounting.lost_work.groups import GroupIndex
from gputally.accounting.totals.series import Labels
from gputally.frameworks.framework import OnLoss
from gputally.frameworks.groups import PodGroup
from gputally.model.allocation import State
from gputally.model.lost_work import CheckpointSource, WorkCheckpoint
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.model.units import US_PER_SECOND

_OVERDUE_EVERY_US = 30 * US_PER_SECOND
_MOST_STALE = 1000


class WorkAtRisk(Struct, frozen=True, kw_only=True):
    """GPU-time (µs·µGPU) by exported tier and tenant, its exact cost, also by currency, and overdue checkpoints."""

    gpu_time: Mapping[Labels, int]
    cost: Mapping[Labels, int]
    overdue: Mapping[Labels, int]


class PodAtRisk(Struct, frozen=True, gc=False):
    """A running pod, when (µs) the work begins that it would lose, when the next checkpoint is assumed, and the basis.

    That is its last checkpoint, or the accounting start if that is later; `basis` says how the checkpoint is known.
    """

    record: PodRecord
    from_us: int
    due_us: int | None
    basis: CheckpointSource


class RunningPods(NamedTuple):
    """Pods with work that run at one instant, by UID, and those of them with a checkpoint; any thread may read them.

    Work before `since_us` does not count.
    """

    records: Mapping[str, PodRecord]
    saved: Mapping[str, PodAtRisk]
    since_us: int

    def get(self, uid: str) -> PodAtRisk | None:
        """The pod, if it would lose work."""
        record = self.records.get(uid)
        return (self.saved.get(uid) or _unsaved(record, self.since_us)) if record else None

    def at_risk(self) -> Iterator[PodAtRisk]:
        """All that would lose work."""
        return filter(None, map(self.get, self.records))


def _unsaved(record: PodRecord, since_us: int) -> PodAtRisk:
    """A pod that would lose all since its start."""
    return PodAtRisk(record, max(record.started_us or 0, since_us), None, CheckpointSource.START)


class AtRisk:
    """Running pods that have work to lose, each with the last checkpoint as of its last change or step.

    A pod is counted with the record that was known at the last `advance`. The sums move with the time by themselves;
    only a pod with an assumed interval changes as time passes, once for each interval. Work before `since_us`, the
    accounting start, does not count.
    """

    def __init__(
        self,
        pods: Mapping[str, PodRecord],
        checkpoints: Checkpoints,
        restarts: ContainerRestarts,
        groups: GroupIndex,
        *,
        rules: Rules,
        since_us: int,
    ) -> None:
        self._pods = pods
        self._since_us = since_us
        self._checkpoints = checkpoints
        self._restarts = restarts
        self._groups = groups
        self._rules = rules
        self._gpu_time: dict[Labels, list[int]] = {}
        """a, b and the number of contributions, by exported tier and tenant."""
        self._cost: dict[Labels, list[int]] = {}
        """For the cost: a, b and the number of contributions, by exported tier, tenant and currency."""
        self._counted: dict[str, PodRecord] = {}
        """Each running pod as counted."""
        self._saved: dict[str, PodAtRisk] = {}
        """Counted pods with a checkpoint or a restart; the others would lose all work since their start."""
        self._outdated: set[str] = set()
        self._steps: list[tuple[int, str]] = []
        self._of_group: dict[PodGroup, WorkCheckpoint] = {}
        """The latest checkpoint that any pod of a group stated."""
        self._overdue: dict[Labels, int] = {}
        self._next_overdue_us = 0

    def invalidate(self, uid: str) -> None:
        """A pod is new or has changed."""
        self._outdated.add(uid)

    def drop(self, uid: str) -> None:
        """A pod is gone."""
        if uid in self._counted:
            self._remove(uid)
        self._outdated.discard(uid)

    def advance(self, now_us: int) -> None:
        """Count all changes since the last call."""
        for uid in self._checkpoints.fresh:
            self._outdated |= self._sharing(uid)
        self._checkpoints.fresh.clear()
        self._outdated |= self._restarts.fresh
        self._restarts.fresh.clear()
        for uid in self._outdated:
            self._replace(uid, now_us)
        self._outdated.clear()
        self._step(now_us)
        if now_us >= self._next_overdue_us:
            self._next_overdue_us = now_us + _OVERDUE_EVERY_US
            self._overdue = self._count_overdue(now_us)
            self._of_group = {each: stated for each, stated in self._of_group.items() if self._groups.members(each)}

    def read(self, now_us: int) -> WorkAtRisk:
        """The work at risk at `now_us`."""
        gpu_time = {payer: a + b * now_us for payer, (a, b, _) in self._gpu_time.items()}
        cost = {payer: a + b * now_us for payer, (a, b, _) in self._cost.items()}
        return WorkAtRisk(gpu_time=gpu_time, cost=cost, overdue=self._overdue)

    def running(self) -> RunningPods:
        """The running pods as of the last `advance`, some 1 ms for 20,000."""
        return RunningPods(dict(self._counted), dict(self._saved), self._since_us)

    def overdue(self, now_us: int) -> Iterator[PodAtRisk]:
        """Running pods that declare an interval and have stated no checkpoint for 1.5 times it."""
        for uid, checkpoint in self._checkpoints.known.items():
            if checkpoint.interval_us and (counted := self._counted.get(uid)):
                last_us = max((each.at_us for each in self._stated(uid)), default=0)
                last_us = max(last_us, self._start_us(counted))
                if 2 * (now_us - last_us) > 3 * checkpoint.interval_us:
                    yield self._at_risk(counted)

    def stated_in(self, group: PodGroup | None) -> tuple[WorkCheckpoint, ...]:
        """The latest checkpoint that a pod of the group stated before the last `advance`."""
        stated = self._of_group.get(group) if group else None
        return (stated,) if stated else ()

    def _sharing(self, uid: str) -> set[str]:
        """The pods whose checkpoint a pod states: itself, and its group unless that works each for itself."""
        group, stated = self._groups.of(uid), self._checkpoints.of(uid).stated
        if group is None or stated is None or group.on_loss is OnLoss.CONTINUE:
            return {uid}
        known = self._of_group.get(group)
        if known and known.at_us >= stated.at_us:
            return {uid}
        self._of_group[group] = stated
        return self._groups.members(group) | {uid}

    def _at_risk(self, counted: PodRecord) -> PodAtRisk:
        return self._saved.get(counted.uid) or _unsaved(counted, self._since_us)

    def _replace(self, uid: str, now_us: int) -> None:
        before = self._remove(uid)
        record = self._pods.get(uid)
        if record and is_running(record) and self._may_lose(record):
            self._add(record, now_us, scheduled_us=before.due_us if before else None)

    def _may_lose(self, record: PodRecord) -> bool:
        """Whether its containers run, and do work."""
        is_waiting = self._restarts.since_us(record.uid) == WAITING
        return not is_waiting and has_work(record, self._checkpoints.of(record.uid), self._rules)

    def _add(self, record: PodRecord, now_us: int, *, scheduled_us: int | None) -> None:
        self._counted[record.uid] = record
        if saved := self._last_saved(record, now_us):
            self._saved[record.uid] = saved
            if saved.due_us is not None and saved.due_us != scheduled_us:
                heappush(self._steps, (saved.due_us, record.uid))
        self._post(self._at_risk(record), 1)

    def _last_saved(self, record: PodRecord, now_us: int) -> PodAtRisk | None:
        stated = self._stated(record.uid)
        interval_us = None if stated else self._interval_of(record)
        start_us = self._start_us(record)
        if not stated and not interval_us and start_us == record.started_us:
            return None
        last = last_checkpoint(stated, start_us=start_us, end_us=max(now_us, start_us), interval_us=interval_us)
        due_us = last.at_us + interval_us if interval_us else None
        return PodAtRisk(record, max(last.at_us, self._since_us), due_us, last.source)

    def _start_us(self, record: PodRecord) -> int:
        return max(record.started_us or 0, self._restarts.since_us(record.uid) or 0)

    def _interval_of(self, record: PodRecord) -> int | None:
        return self._checkpoints.of(record.uid).interval_us or declared_interval(record, self._rules)

    def _stated(self, uid: str) -> list[WorkCheckpoint]:
        group = self._groups.of(uid)
        found = self._checkpoints.of(uid).stated, self._of_group.get(group) if group else None
        return [each for each in found if each]

    def _remove(self, uid: str) -> PodAtRisk | None:
        if (record := self._counted.pop(uid, None)) is None:
            return None
        counted = self._at_risk(record)
        self._saved.pop(uid, None)
        self._post(counted, -1)
        return counted

    def _post(self, counted: PodAtRisk, sign: int) -> None:
        from_us = counted.from_us
        for each in reversed(counted.record.segments):
            if each.end_us is not None and each.end_us <= from_us:
                return
            if each.state is State.GANG_WAIT:
                continue
            payer, quantity, start_us = each.labels[:2], sign * each.quantity, max(each.start_us, from_us)
            a, b = (-quantity * start_us, quantity) if each.end_us is None else (quantity * (each.end_us - start_us), 0)
            _shift(self._gpu_time, payer, a, b, sign)
            if price := each.price:
                _shift(self._cost, (*payer, price.currency), price.cost(a), price.cost(b), sign)

    def _step(self, now_us: int) -> None:
        """Move on the pods whose assumed checkpoint is due; entries of earlier states are skipped.

        Whoever may patch a pod may add such entries by changing its interval, so that they are dropped now and then.
        """
        if len(self._steps) > 2 * len(self._counted) + _MOST_STALE:
            self._steps = [(each.due_us, uid) for uid, each in self._saved.items() if each.due_us is not None]
            heapify(self._steps)
        while self._steps and self._steps[0][0] <= now_us:
            due_us, uid = heappop(self._steps)
            saved = self._saved.get(uid)
            if saved and saved.due_us == due_us:
                self._replace(uid, now_us)

    def _count_overdue(self, now_us: int) -> dict[Labels, int]:
        """Overdue pods by tier and tenant, with 0 where all that declare an interval keep to it."""
        known = self._checkpoints.known.items()
        declaring = (self._counted.get(uid) for uid, checkpoint in known if checkpoint.interval_us)
        found: dict[Labels, int] = {each.terms[-1].labels[:2]: 0 for each in declaring if each}
        for each in self.overdue(now_us):
            found[each.record.terms[-1].labels[:2]] += 1
        return found


def _shift(lines: dict[Labels, list[int]], labels: Labels, a: int, b: int, count: int) -> None:
    """Add to the line with these labels; one without contributions has no entry."""
    line = lines.setdefault(labels, [0, 0, 0])
    line[0] += a
    line[1] += b
    line[2] += count
    if not line[2]:
        del lines[labels]


def is_running(record: PodRecord) -> bool:
    """Whether a preemption now would cost the pod its work: it runs, and its deletion is not requested."""
    return record.started_us is not None and record.deletion_us is None and record.end_us is None
