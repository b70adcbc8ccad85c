"""Keeps the losses of pods by pod, by group and by the disruption that they are charged to."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.state_part import KeyedDocuments
from gputally.accounting.lost_work.work_since_checkpoint import (
    Amounts,
    PodWork,
    checkpoint_before_end,
    loss_amounts,
    lost_work,
)
from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Totals
from gputally.frameworks.groups import PodGroup
from gputally.model.disruptions import PREEMPTIONS, Cause
from gputally.model.lost_work import LostWork, WorkCheckpoint

Key = TypeVar("Key")
_NONE: Final[frozenset[str]] = frozenset()


class PodLoss(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One ended pod, observed to have ended at `noticed_us`.

    `charged_to` is the victim of the disruption that cost its work, itself for a victim, empty if it lost none; `cause`
    is why that one was disrupted.
    `shared` are the checkpoints of its group before its end. For a victim, `stalled` is the GPU-time of the members
    that waited for its replacement until `stalled_until_us`, by exported tier and tenant, and `is_final` says that what
    became of its group is known. Victims of a group that were resolved together have the same `case`. `counted` is what
    the counters have of it.
    """

    work: PodWork
    is_victim: bool
    noticed_us: int
    charged_to: str = ""
    cause: Cause = Cause.PREEMPTION
    shared: tuple[WorkCheckpoint, ...] = ()
    stalled: tuple[tuple[str, str, int], ...] = ()
    stalled_until_us: int = 0
    is_final: bool = False
    case: str = ""
    counted: tuple[tuple[Total, tuple[str, ...], int], ...] = ()

    @property
    def checkpoint(self) -> WorkCheckpoint:
        """The last checkpoint before the end."""
        return checkpoint_before_end(self.work, self.shared)


def amounts_of(loss: PodLoss, *, from_us: int, what_ifs_us: Iterable[int]) -> Amounts:
    """What the counters should have of it; they exclude everything before `from_us`.

    `what_ifs_us` are the checkpoint intervals for which the loss is computed, too.
    """
    found: Amounts = {}
    if loss.charged_to:
        found = loss_amounts(loss.work, loss.checkpoint, cause=loss.cause, from_us=from_us, what_ifs_us=what_ifs_us)
    if loss.cause in PREEMPTIONS:
        found |= {(Total.STALLED, (tier, tenant)): amount for tier, tenant, amount in loss.stalled}
    return found


def with_counted(loss: PodLoss, amounts: Amounts) -> PodLoss:
    """`loss` as counted."""
    return replace(loss, counted=tuple((total, labels, amount) for (total, labels), amount in amounts.items()))


def with_shared(loss: PodLoss, stated: Sequence[WorkCheckpoint]) -> PodLoss:
    """`loss` with the latest checkpoint before its end, among the one known before and those `stated`, in order."""
    before = bisect_right(stated, loss.work.end_us, key=lambda each: each.at_us)
    found = (*stated[max(0, before - 1) : before], *loss.shared)
    return replace(loss, shared=tuple(sorted(found, key=lambda each: each.at_us)[-1:]))


def loses_work(work: PodWork, cause: Cause) -> bool:
    """Whether a victim lost its work: one that ended by itself did not, but a kubelet's victims look as if they had."""
    return not (work.succeeded or (cause is Cause.PREEMPTION and work.ended_itself))


class LossBook(KeyedDocuments[PodLoss]):
    """Losses by the UID of the pod; the counters have what they amount to."""

    def __init__(self, totals: Totals, what_ifs_us: Sequence[int]) -> None:
        """`what_ifs_us` are the checkpoint intervals for which losses are computed, too."""
        super().__init__()
        self._totals = totals
        self._what_ifs_us = what_ifs_us
        self._of_group: dict[PodGroup, set[str]] = {}
        self._charged: dict[str, set[str]] = {}
        """UIDs of pods by the UID of the victim that their loss is charged to."""
        self._changed: set[str] = set()
        """UIDs of victims whose loss changed since the last `drain_lost`."""
        self._forgotten: dict[str, LostWork | None] = {}
        """Losses that changed since then, and were forgotten before they were drained."""

    def of_group(self, group: PodGroup) -> AbstractSet[str]:
        """The pods of a group whose losses are kept."""
        return self._of_group.get(group, _NONE)

    def charged_with(self, loss: PodLoss) -> AbstractSet[str]:
        """The pods that lost work to the same disruption, itself included: together they are what the ledger has."""
        return self.charged_to(loss.charged_to) if loss.charged_to else {loss.work.uid}

    def charged_to(self, victim_uid: str) -> AbstractSet[str]:
        """The pods that lost work to the disruption of a victim."""
        return self._charged.get(victim_uid, _NONE)

    def keep(self, loss: PodLoss, *, at_us: int) -> None:
        """Store a loss, and correct the counters by the difference to what they have of it."""
        uid, known = loss.work.uid, self.known.get(loss.work.uid)
        amounts = amounts_of(loss, from_us=self._totals.accounting_start_us, what_ifs_us=self._what_ifs_us)
        counted = {(total, labels): amount for total, labels, amount in loss.counted}
        for (total, labels), amount in {**dict.fromkeys(counted, 0), **amounts}.items():
            if difference := amount - counted.get((total, labels), 0):
                self._totals.count(total, labels, difference, at_us=at_us)
        loss = with_counted(loss, amounts)
        if loss != known:
            self.put(loss)
            self._touched.add(uid)
            self._changed.update(each for each in (known.charged_to if known else "", loss.charged_to) if each)

    def put(self, loss: PodLoss) -> None:
        """Store a loss as it was counted."""
        uid, known = loss.work.uid, self.known.get(loss.work.uid)
        if known and known.charged_to != loss.charged_to:
            _discard(self._charged, known.charged_to, uid)
        if known and known.work.group and known.work.group != loss.work.group:  # the author may relabel an ended pod
            _discard(self._of_group, known.work.group, uid)
        self.known[uid] = loss
        if loss.charged_to:
            self._charged.setdefault(loss.charged_to, set()).add(uid)
        if loss.work.group:
            self._of_group.setdefault(loss.work.group, set()).add(uid)

    def forget(self, uid: str) -> None:
        """Drop a loss; the counters keep it."""
        loss = self.known[uid]
        for victim_uid in self._changed & {uid, loss.charged_to}:  # its own, too: it may have proved to be no victim
            self._changed.remove(victim_uid)
            self._forgotten[victim_uid] = self.lost_work(victim_uid)
        self._remove(uid)
        _discard(self._charged, loss.charged_to, uid)
        if loss.work.group:
            _discard(self._of_group, loss.work.group, uid)

    def withdraw(self, uid: str, *, at_us: int) -> None:
        """The pod had not ended after all: the counters take back its loss. No other is charged to its disruption."""
        loss = self.known[uid]
        self.keep(replace(loss, work=replace(loss.work, spans=()), stalled=()), at_us=at_us)
        self.forget(uid)
        if loss.is_victim:
            self._forgotten[uid] = None

    def lost_work(self, victim_uid: str) -> LostWork | None:
        """The loss of a disruption; None while the end of the victim is not known, or long after."""
        victim = self.known.get(victim_uid)
        if victim is None or not victim.is_victim:
            return None
        charged = (self.known[uid] for uid in sorted(self.charged_to(victim_uid)))
        return lost_work(
            victim.work,
            {each.work.uid: (each.work, each.checkpoint) for each in charged},
            from_us=self._totals.accounting_start_us,
            stalled_gpu_time=sum(amount for _, _, amount in victim.stalled),
            is_final=victim.is_final,
            what_ifs_us=self._what_ifs_us,
            is_preemption=victim.cause in PREEMPTIONS,
        )

    def drain_lost(self) -> dict[str, LostWork | None]:
        """New and corrected losses since the last call, by victim; None for a pod that proved to be none."""
        changed, self._changed = self._changed, set()
        forgotten, self._forgotten = self._forgotten, {}
        return forgotten | {uid: self.lost_work(uid) for uid in changed if uid in self.known}


def _discard(index: dict[Key, set[str]], key: Key, uid: str) -> None:
    if uids := index.get(key):
        uids.discard(uid)
        if not uids:
            del index[key]
