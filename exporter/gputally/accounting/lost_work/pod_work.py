"""The work of a pod that has ended, as far as it may count as lost."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from gputally.accounting.facts.outcome import outcome_of
from gputally.accounting.frameworks.pod_group import PodGroup, attempt_of
from gputally.model.allocation import Outcome, Segment, State
from gputally.model.lost_work import CheckpointSource, PodCheckpoint, WorkCheckpoint, WorkSpan
from gputally.model.pod_record import PodRecord

_KILLED = 137
"""The exit code after SIGKILL: the grace period was over before the work was saved."""
_OWN = (Outcome.SUCCEEDED, Outcome.FAILED)


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
