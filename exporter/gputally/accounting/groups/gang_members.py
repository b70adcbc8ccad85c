"""The pods of one gang, counted by how far they are."""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import IntEnum

from msgspec import Struct, field

from gputally.accounting.frameworks.declared_groups import MOST_TASKS
from gputally.accounting.frameworks.pod_group import PodGroup, task_of
from gputally.accounting.groups.gang_completion import until_us
from gputally.model.pod_record import INCOMPLETE, PodRecord


class Stage(IntEnum):
    """How far a pod of a gang is."""

    PENDING = 0
    BOUND = 1
    RUNNING = 2
    """Also one that has succeeded."""
    OVER = 3
    """Its deletion is requested, or it has ended otherwise."""


class GangMembers(Struct):
    """The existing pods of a gang by UID, and how many are at each stage.

    `waiting` are the creation times of those that have not started, in order of arrival. `stated` is the size that
    pods state, 0 for none, `latest_us` the latest start. `has_lost` says that a pod is over. `told_us` is when the gang
    was complete, as the pods know it. `names` are the PodGroup objects that its pods name, "" for none;
    `needs_object` says that the group is no gang unless its object says so. `tasks` are the first ones
    of its pods, with the number of these that have ever started, also of earlier pods: whoever creates pods may name
    another task in each.
    """

    group: PodGroup
    key: str
    stages: dict[str, Stage] = field(default_factory=dict)
    counts: list[int] = field(default_factory=lambda: [0] * len(Stage))
    waiting: dict[str, int] = field(default_factory=dict)
    stated: int = 0
    latest_us: int = 0
    has_leader: bool = False
    has_lost: bool = False
    told_us: int | None = None
    names: tuple[str, ...] = ()
    needs_object: bool = False
    tasks: Counter[str] = field(default_factory=Counter)

    @property
    def bound(self) -> int:
        """Pods that hold GPUs for the gang."""
        return self.counts[Stage.BOUND] + self.counts[Stage.RUNNING]

    @property
    def present(self) -> int:
        """Pods that work for the gang, or will."""
        return self.counts[Stage.PENDING] + self.bound

    def put(self, record: PodRecord) -> bool:
        """A pod is new or has changed; returns whether it is at another stage."""
        stage, before = stage_of(record), self.stages.get(record.uid)
        if stage is before:
            return False
        if before is not None:
            self.drop(record.uid)
        if before is None or before < Stage.RUNNING <= stage:
            self._count_task(task_of(record), has_started=stage >= Stage.RUNNING)
        self.stages[record.uid] = stage
        self.counts[stage] += 1
        if stage < Stage.RUNNING:
            self.waiting[record.uid] = record.created_us
        elif stage is Stage.RUNNING:
            self.latest_us = max(self.latest_us, record.started_us or 0)
        return True

    def drop(self, uid: str) -> None:
        """A pod has gone, or has moved on."""
        stage = self.stages.pop(uid)
        self.counts[stage] -= 1
        self.waiting.pop(uid, None)
        self.has_lost |= stage is Stage.OVER

    def required(self, tasks: Iterable[tuple[str, str, int]]) -> Mapping[str, int]:
        """How many pods of each task must run, by the minimums of tasks; those without known pods have no GPUs."""
        found = Counter[str]()
        for _, task, least in tasks:
            if task in self.tasks:
                found[task] += least
        return found

    def may_be_complete(self, size: int | None, tasks: Iterable[tuple[str, str, int]]) -> bool:
        """Whether it is worth to compare the times of all pods: no pod is missing as far as the counts know."""
        if size is not None:
            if self.counts[Stage.RUNNING] + self.counts[Stage.OVER] < size:
                return False
            return all(self.tasks[task] >= least for task, least in self.required(tasks).items())
        oldest_us = next(iter(self.waiting.values()), None)
        return self.counts[Stage.RUNNING] > 0 and (oldest_us is None or oldest_us > self.latest_us)

    def _count_task(self, task: str, *, has_started: bool) -> None:
        if task and (task in self.tasks or len(self.tasks) < MOST_TASKS):
            self.tasks[task] += has_started


def stage_of(record: PodRecord) -> Stage:
    """How far a pod is."""
    if until_us(record) != INCOMPLETE:
        return Stage.OVER
    if record.started_us is not None:
        return Stage.RUNNING
    return Stage.PENDING if record.scheduled_us is None else Stage.BOUND
