"""The pods of each group, and what the others did after it lost some: whether they restarted too, or waited."""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.accounting.base.compact import with_uid, without_uid
from gputally.accounting.facts.outcome import outcome_of
from gputally.accounting.lost_work.work_since_checkpoint import PodWork, union
from gputally.frameworks.framework import OnLoss
from gputally.frameworks.groups import PodGroup, attempt_of, group_of
from gputally.model.allocation import Outcome
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

PATIENCE_US: Final = US_PER_HOUR
"""How long after the end of a victim its replacement is awaited. Then the group is taken to go on without it."""


class GroupIndex:
    """UIDs of the existing pods of each group."""

    def __init__(self) -> None:
        self._members: dict[PodGroup, Collection[str]] = {}
        self._group_of: dict[str, PodGroup] = {}

    def put(self, record: PodRecord) -> None:
        """Add a pod that is new or has other labels."""
        self.drop(record.uid)
        if group := group_of(record):
            group = next((self._group_of[uid] for uid in self._members.get(group, ())), group)  # one object for all
            self._members[group] = with_uid(self._members.get(group, ()), record.uid)
            self._group_of[record.uid] = group

    def of(self, uid: str) -> PodGroup | None:
        """The group of a pod."""
        return self._group_of.get(uid)

    def members(self, group: PodGroup | None) -> set[str]:
        """The pods of a group."""
        return {*self._members.get(group, ())} if group else set()

    def drop(self, uid: str) -> None:
        """Remove a pod."""
        if group := self._group_of.pop(uid, None):
            left = self._members[group] = without_uid(self._members[group], uid)
            if not left:
                del self._members[group]


class Member(NamedTuple):
    """A pod of the group; its times in µs. `end_us` is None while it exists and holds GPUs.

    `succeeded` and `failed` say that it ended by itself, before anybody deleted it.
    """

    uid: str
    created_us: int
    started_us: int | None
    requested_us: int | None
    end_us: int | None
    succeeded: bool
    failed: bool
    attempt: int


class GroupVerdict(Struct, frozen=True, kw_only=True, gc=False):
    """`restarted` are the members that lost their work with the victims; `waiting` waited during the `stalls`.

    It may change until it `is_final`.
    """

    restarted: AbstractSet[str] = frozenset()
    waiting: AbstractSet[str] = frozenset()
    stalls: Sequence[tuple[int, int]] = ()
    is_final: bool = True


def ended_member(work: PodWork) -> Member:
    """A pod that has ended."""
    times = work.created_us, work.started_us, work.requested_us, work.end_us
    failed = work.ended_itself and not work.succeeded
    return Member(work.uid, *times, succeeded=work.succeeded, failed=failed, attempt=work.attempt)


def present_member(record: PodRecord) -> Member:
    """A pod that exists."""
    times = record.created_us, record.started_us, record.deletion_us, record.end_us
    outcome = outcome_of(record)
    succeeded, failed = outcome is Outcome.SUCCEEDED, outcome is Outcome.FAILED
    return Member(record.uid, *times, succeeded=succeeded, failed=failed, attempt=attempt_of(record))


def verdict_of(
    on_loss: OnLoss,
    victims: Sequence[Member],
    others: Sequence[Member],
    *,
    now_us: int,
    suspended_us: int | None = None,
) -> GroupVerdict:
    """What became of the `others` of the group, as far as its pods show, and when its Job was suspended last.

    A pod that failed by itself is not one of them, unless its group works together and waited for the victims then.
    The group restarted if its controller counted a restart or was suspended, or if all other members left after the
    first request and have successors; where a kind restarts by default, it is enough that all left.
    """
    since_us = min(_requested_us(each) for each in victims)
    new = [each for each in (*others, *victims) if each.created_us >= since_us]
    replaced_us = sorted(each.started_us for each in new if each.started_us is not None)
    waits_until_us = replaced_us[len(victims) - 1] if len(replaced_us) >= len(victims) else now_us + 1
    old = [
        each
        for each in others
        if each.created_us < since_us
        and not _is_over(each, since_us)
        and not _failed_alone(each, on_loss, since_us, until_us=waits_until_us)
    ]
    left = [each for each in old if _has_left(each, since_us)]
    stayed = [each for each in old if each.requested_us is None and each.end_us is None]
    is_overdue = now_us >= max(each.end_us or since_us for each in victims) + PATIENCE_US
    is_suspended = suspended_us is not None and suspended_us > since_us - US_PER_SECOND
    if is_suspended or _has_restarted(
        on_loss, [each for each in victims if each.created_us < since_us], new, left=left, stayed=stayed
    ):
        ended = {each.uid for each in left if each.end_us is not None}
        return GroupVerdict(restarted=ended, is_final=is_overdue or (not stayed and len(ended) == len(left)))
    is_complete = not old or (bool(stayed) and len(replaced_us) >= len(victims))
    if not (is_complete or is_overdue):
        return GroupVerdict(is_final=False)
    if on_loss is OnLoss.CONTINUE or not old:
        return GroupVerdict()
    return GroupVerdict(waiting={each.uid for each in old}, stalls=_stalls(victims, replaced_us, now_us))


def _has_restarted(
    on_loss: OnLoss, lost: Sequence[Member], new: Sequence[Member], *, left: Sequence[Member], stayed: Sequence[Member]
) -> bool:
    attempt = max((each.attempt for each in lost), default=0)
    if any(each.attempt > attempt for each in new):
        return True
    if stayed or not left:
        return False
    return on_loss is OnLoss.RESTART or len(new) >= len(left) + len(lost)


def _stalls(victims: Sequence[Member], replaced_us: Sequence[int], now_us: int) -> list[tuple[int, int]]:
    """From the end of each victim to the start of its replacement; the first one replaces the first victim."""
    ends = sorted(each.end_us for each in victims if each.end_us is not None)
    missing = [min(now_us, end_us + PATIENCE_US) for end_us in ends[len(replaced_us) :]]
    return union(zip(ends, [*replaced_us[: len(ends)], *missing], strict=True))


def _requested_us(member: Member) -> int:
    """When the pod was asked to stop; its end if nobody asked."""
    times = [each for each in (member.requested_us, member.end_us) if each is not None]
    return min(times, default=member.created_us)


def _is_over(member: Member, since_us: int) -> bool:
    """Whether it had left, or was leaving, before the group lost a pod, or has completed its work."""
    return member.succeeded or _requested_us(member) < since_us if _is_leaving(member) else False


def _is_leaving(member: Member) -> bool:
    return member.requested_us is not None or member.end_us is not None


def _failed_alone(member: Member, on_loss: OnLoss, since_us: int, *, until_us: int) -> bool:
    """Whether it failed by itself, for another reason than that its group lost the victims.

    Pods that work each for themselves always do. Others may fail because a victim is gone, as collective operations
    break off then, but not in the very second in which it is asked to stop, nor once its replacement runs.
    """
    if not member.failed or on_loss is OnLoss.CONTINUE:
        return member.failed
    return not since_us + US_PER_SECOND <= _requested_us(member) < until_us


def _has_left(member: Member, since_us: int) -> bool:
    return _is_leaving(member) and _requested_us(member) >= since_us
