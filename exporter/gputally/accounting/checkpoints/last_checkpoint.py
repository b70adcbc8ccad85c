"""Up to when the work of a pod is saved: what is stated counts before what is declared."""

from collections.abc import Iterable

from gputally.model.lost_work import CheckpointSource, WorkCheckpoint


def last_checkpoint(
    stated: Iterable[WorkCheckpoint], *, start_us: int, end_us: int, interval_us: int | None
) -> WorkCheckpoint:
    """The last checkpoint of work from `start_us` to `end_us`, never before or after it.

    `stated` are those of the pod and of its group. Without any, one is assumed every `interval_us` since the start, if
    that is declared; otherwise nothing is saved since the start.
    """
    latest = max(stated, key=lambda each: each.at_us, default=None)
    if latest:
        return WorkCheckpoint(at_us=min(max(latest.at_us, start_us), end_us), source=latest.source)
    if interval_us is not None:
        return WorkCheckpoint(at_us=end_us - (end_us - start_us) % interval_us, source=CheckpointSource.INTERVAL)
    return WorkCheckpoint(at_us=start_us, source=CheckpointSource.START)
