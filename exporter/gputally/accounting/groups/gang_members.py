"""The pods of one gang: how far each is, and when all of them ran at once for the first time."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Final

from msgspec import Struct, field

from gputally.accounting.facts.outcome import outcome_of
from gputally.frameworks.groups import PodGroup
from gputally.frameworks.volcano import MOST_TASKS, task_of
from gputally.model.allocation import Outcome
from gputally.model.pod_record import INCOMPLETE, PodRecord

_NO_TASKS: Final[Mapping[str, int]] = {}


def together_us(records: Iterable[PodRecord], size: int | None, tasks: Mapping[str, int] = _NO_TASKS) -> int | None:
    """When `size` of these pods ran for the first time, or all that belong to the gang if its size is not known.

    Among them must be so many of each of the `tasks`. None if that has not happened yet. A pod that succeeded did its
    part, so that it still counts.
    """
    return _all_us(records) if size is None else _some_us(records, size, tasks)


def until_us(record: PodRecord) -> int:
    """Until when a pod works for its gang: its end or the request of its deletion; `INCOMPLETE` for neither."""
    if record.end_us is not None and outcome_of(record) is Outcome.SUCCEEDED:
        return INCOMPLETE
    return min((each for each in (record.deletion_us, record.end_us) if each is not None), default=INCOMPLETE)


def _some_us(records: Iterable[PodRecord], size: int, tasks: Mapping[str, int]) -> int | None:
    running, of_task = 0, Counter[str]()
    for at_us, change, task in sorted(_changes(records)):
        running += change
        of_task[task] += change
        if running >= size and all(of_task[each] >= least for each, least in tasks.items()):
            return at_us
    return None


def _changes(records: Iterable[PodRecord]) -> Iterator[tuple[int, int, str]]:
    """Starts and ends with the task of the pod; of the same instant, ends come first."""
    for record in records:
        if record.started_us is not None and record.started_us < (end_us := until_us(record)):
            task = task_of(record)
            yield record.started_us, 1, task
            yield end_us, -1, task


def _all_us(records: Iterable[PodRecord]) -> int | None:
    """Pods that were created after all others had started are replacements."""
    found: int | None = None
    for record in sorted(records, key=lambda each: each.created_us):
        if found is not None and record.created_us > found:
            return found
        if until_us(record) == INCOMPLETE:
            if record.started_us is None:
                return None
            found = max(found or 0, record.started_us)
    return found


class Stage(IntEnum):
    """How far a pod of a gang is."""

    PENDING = 0
    BOUND = 1
    RUNNING = 2
    """Also one that has succeeded."""
    OVER = 3
    """The deletion of the pod is requested, or it has ended otherwise."""


class GangMembers(Struct):
    """The existing pods of a gang by UID, and how many are at each stage.

    `waiting` are the creation times of those that have not started, in order of arrival. `stated` is the size that
    pods state, 0 for none, `latest_us` the latest start. `has_lost` says that a pod is over. `known_complete_us` is
    when the gang was complete, as the pods know it. `names` are the PodGroup objects that its pods name, "" for none;
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
    known_complete_us: int | None = None
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
