"""Finds what follows a disruption: the next pod on the node, and the pod that replaces the victim.

Changes of several pods are accounted together, in no certain order: the next pod may be bound, and even deleted, before
the end of the victim is accounted.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from gputally.model.disruptions import OWN_JOB, Cause, Victim
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND

Key = TypeVar("Key")
_Job = tuple[str, str, str]
"""Namespace, kind and name."""
_KEEP_US = 120 * US_PER_SECOND
"""How long the binding of a deleted pod is kept: changes are accounted within seconds."""
_scheduled_us: Final = attrgetter("scheduled_us")


class Binding(NamedTuple):
    """When a pod was bound, and when it was deleted."""

    scheduled_us: int
    uid: str
    left_us: int


class Replacements:
    """Disruptions that wait for the reuse of their GPUs or for a replacement. Times have whole seconds.

    `on_node` returns the existing pods that are bound to a node.
    """

    def __init__(self, on_node: Callable[[str], Iterable[PodRecord]]) -> None:
        self._on_node = on_node
        self._left: dict[str, list[Binding]] = {}
        """Deleted pods by node, in the order of their binding."""
        self._looked_at: dict[str, int] = {}
        """When existing pods were bound whose bindings are compared: later disruptions find them by themselves."""
        self._followed: dict[str, dict[str, Victim]] = {}
        """Followed disruptions by node and victim."""
        self._unused: dict[str, dict[str, Victim]] = {}
        """Disruptions whose GPUs no binding has reused yet, by node and victim."""
        self._last_reuse_us: dict[str, int] = {}
        """A binding at this time or later is not the first one after any of the others."""
        self._unreplaced: dict[_Job, dict[str, Victim]] = {}
        """Disruptions without a replacement by job and victim."""
        self._decided_us: dict[_Job, int] = {}
        """A time before all of these were decided: most pods of a large job were created earlier."""
        self._replacements: set[str] = set()

    def follow(self, each: Victim) -> None:
        """Wait for what is missing of a disruption."""
        self._followed.setdefault(each.node, {})[each.victim_uid] = each
        if each.reused_us is None:
            self._unused.setdefault(each.node, {})[each.victim_uid] = each
        else:
            self._last_reuse_us[each.node] = max(each.reused_us, self._last_reuse_us.get(each.node, 0))
        if each.replacement_uid:
            self._replacements.add(each.replacement_uid)
        elif each.job_kind != OWN_JOB:
            job = _job_of(each)
            self._unreplaced.setdefault(job, {})[each.victim_uid] = each
            self._decided_us[job] = min(each.decided_us, self._decided_us.get(job, each.decided_us))

    def forget(self, each: Victim) -> None:
        """Wait no longer for anything of a disruption."""
        self._replacements.discard(each.replacement_uid)
        _drop(self._followed, each.node, each.victim_uid)
        _drop(self._unused, each.node, each.victim_uid)
        if each.node not in self._followed:
            self._last_reuse_us.pop(each.node, None)
        job = _job_of(each)
        _drop(self._unreplaced, job, each.victim_uid)
        if job not in self._unreplaced:
            self._decided_us.pop(job, None)

    def misses_preempted(self, record: PodRecord) -> bool:
        """Whether a pod of the same job was preempted and has no replacement yet."""
        for each in self._unreplaced.get(record.full_job, {}).values():  # noqa: SIM110 - faster, of many victims
            if each.cause is Cause.PREEMPTION:
                return True
        return False

    def after(self, record: PodRecord) -> Iterable[Victim]:
        """The disruptions that this pod completes, if any."""
        return self._completed_by(record) if self.may_be_completed_by(record) else ()

    def may_be_completed_by(self, record: PodRecord) -> bool:
        """Whether a disruption on the node of a pod, or of its job, waits for what follows; False for most pods."""
        if record.node in self._followed:
            return True
        return bool(self._unreplaced) and record.started_us is not None and record.full_job in self._unreplaced

    def _completed_by(self, record: PodRecord) -> Iterator[Victim]:
        if record.node in self._followed and self._looked_at.get(record.uid) != record.scheduled_us is not None:
            self._looked_at[record.uid] = record.scheduled_us
            for each in self._before(record.node, record.scheduled_us):
                if (better := _reused(each, record.uid, record.scheduled_us)) is not each:
                    yield better
        may_replace = record.started_us is not None and record.full_job in self._unreplaced
        if may_replace and record.uid not in self._replacements:
            yield from self._replaced_by(record)

    def _before(self, node: str, us: int) -> list[Victim]:
        """The disruptions on a node which a binding at `us` may be the first one after: few of hundreds in an hour."""
        is_last = us >= self._last_reuse_us.get(node, 0)
        followed = self._unused.get(node, {}) if is_last else self._followed[node]
        latest_us = us + US_PER_SECOND
        return [
            each
            for each in followed.values()
            if each.released_us is not None
            and each.released_us < latest_us
            and (each.reused_us is None or each.reused_us > us)
        ]

    def reused(self, each: Victim) -> Victim:
        """A new or changed disruption, with the first known binding to its node after its release."""
        reused_us = None if each.released_us is None else self._first_us(each, each.released_us)
        return each if reused_us == each.reused_us else replace(each, reused_us=reused_us)

    def _first_us(self, each: Victim, released_us: int) -> int | None:
        """The first known binding after the release, which API times may date up to a second before it."""
        after_us, victim = released_us - US_PER_SECOND, each.victim_uid
        left = self._left.get(each.node, [])
        first = bisect_right(left, after_us, key=_scheduled_us)
        found = [each_left.scheduled_us for each_left in left[first : first + 2] if each_left.uid != victim]
        for record in self._on_node(each.node):
            scheduled_us = record.scheduled_us
            if scheduled_us is not None and scheduled_us > after_us and record.uid != victim:
                found.append(scheduled_us)
        if each.reused_us is not None and each.reused_us > after_us:
            found.append(each.reused_us)
        return max(released_us, min(found)) if found else None

    def leave(self, record: PodRecord, *, at_us: int) -> None:
        """A pod was deleted."""
        self._looked_at.pop(record.uid, None)
        if record.scheduled_us is not None:
            insort(self._left.setdefault(record.node, []), Binding(record.scheduled_us, record.uid, at_us))

    def advance(self, now_us: int) -> None:
        """Forget pods that were deleted long ago."""
        for node, bindings in tuple(self._left.items()):
            self._left[node] = [each for each in bindings if each.left_us >= now_us - _KEEP_US]
            if not self._left[node]:
                del self._left[node]

    def _replaced_by(self, record: PodRecord) -> Iterator[Victim]:
        """The first victim of the same job that has no replacement yet, if the pod was created after it was decided."""
        job = record.full_job
        if not _is_after(self._decided_us.get(job), record.created_us):
            return
        waiting = (
            each
            for each in self._unreplaced[job].values()
            if each.victim_uid != record.uid and _is_after(each.decided_us, record.created_us)
        )
        if first := min(waiting, key=lambda each: (each.decided_us, each.victim_uid), default=None):
            yield replace(first, replaced_us=record.started_us, replacement_uid=record.uid)


def _drop(waiting: dict[Key, dict[str, Victim]], key: Key, victim_uid: str) -> None:
    victims = waiting.get(key, {})
    if victims.pop(victim_uid, None) and not victims:
        del waiting[key]


def _reused(each: Victim, uid: str, scheduled_us: int) -> Victim:
    """The disruption, with this binding if it is the first one after the release."""
    if uid == each.victim_uid or each.released_us is None or not _is_after(each.released_us, scheduled_us):
        return each
    reused_us = max(scheduled_us, each.released_us)
    return each if each.reused_us is not None and each.reused_us <= reused_us else replace(each, reused_us=reused_us)


def _is_after(first_us: int | None, then_us: int | None) -> bool:
    return first_us is not None and then_us is not None and then_us > first_us - US_PER_SECOND


def _job_of(each: Victim) -> _Job:
    return each.victim_namespace, each.job_kind, each.job
