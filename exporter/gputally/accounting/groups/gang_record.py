"""What of a gang must survive a restart."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.frameworks.declared_groups import Declared
from gputally.accounting.frameworks.gang_rules import GangJob
from gputally.accounting.frameworks.pod_group import PodGroup

_MOST_PARTS: Final = 64
"""Jobs of different names in one JobSet; anyone may label more."""


class GangRecord(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A gang. `parts` are the pods of its Jobs by their names in the JobSet, if Jobs say so.

    `minimums` are what the PodGroup objects that its pods name declare, by the key of the object, and `tasks` the
    minimums of tasks that they declare, by object and task.

    `most` pods existed at once before it was complete, which it was at `complete_us`, but not before `not_before_us`.
    """

    group: PodGroup
    parts: tuple[tuple[str, int], ...] = ()
    most: int = 0
    complete_us: int | None = None
    not_before_us: int = 0
    minimums: tuple[tuple[str, int], ...] = ()
    tasks: tuple[tuple[str, str, int], ...] = ()


def without_pods(known: GangRecord) -> GangRecord:
    """The gang after its last pod is gone: its next pods are a new start."""
    return replace(known, complete_us=None, not_before_us=0, minimums=(), tasks=())


def with_job(known: GangRecord, job: GangJob, *, at_us: int) -> GangRecord:
    """The gang with the size of one of its Jobs. A Job that is as old as the gang belonged to it from the start."""
    parts = dict(known.parts)
    before = parts.get(job.part)
    if before == job.pods or len(parts | {job.part: 0}) > _MOST_PARTS:
        return known
    known = replace(known, parts=tuple(sorted((parts | {job.part: job.pods}).items())))
    if before is None:
        is_open = known.complete_us is not None and job.created_us <= known.complete_us
        return replace(known, complete_us=None if is_open else known.complete_us, not_before_us=0)
    return replace(known, not_before_us=max(known.not_before_us, at_us)) if before and job.pods < before else known


def with_minimum(
    known: GangRecord, name: str, declared: Declared | None, *, needs_object: bool, at_us: int
) -> GangRecord:
    """The gang after a PodGroup object was observed for the first time, or has changed; None for a deleted one.

    An object that is observed late counts since its creation, and a change since it was observed. `needs_object` says
    that it was no gang before.
    """
    minimums = dict(known.minimums)
    before = minimums.pop(name, None)
    tasks = {each for each in known.tasks if each[0] != name}
    if declared:
        minimums[name] = declared.pods
        tasks.update((name, *each) for each in declared.tasks)
    changed = replace(known, minimums=tuple(sorted(minimums.items())), tasks=tuple(sorted(tasks)))
    if changed == known or len(minimums) > _MOST_PARTS:
        return known
    if before is not None or declared is None:
        return replace(changed, not_before_us=max(known.not_before_us, at_us))
    if sum(minimums.values()) > max(known.most, 1) and not needs_object:
        return changed  # as long as so many pods with GPUs do not exist, it changes nothing
    is_open = known.complete_us is not None and declared.created_us <= known.complete_us
    complete_us = None if is_open else known.complete_us
    return replace(changed, complete_us=complete_us, not_before_us=declared.created_us)
