"""Counts the work that preemptions and other disruptions destroy.

A victim loses its work since its last checkpoint. Where its group restarts with it, so do the other members. What is
counted follows from what is known, and is corrected by the difference; a pod counts once, whatever else its group lost.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec.structs import replace

from gputally.accounting.base.state_part import StatePart, no_later
from gputally.accounting.facts.outcome import outcome_of
from gputally.accounting.jobs.checkpoints import NOTHING, Checkpoints, declared_interval, has_work
from gputally.accounting.jobs.jobs import Jobs
from gputally.accounting.lost_work.at_risk import AtRisk
from gputally.accounting.lost_work.container_restarts import ContainerRestarts
from gputally.accounting.lost_work.groups import GroupIndex, GroupVerdict, ended_member, present_member, verdict_of
from gputally.accounting.lost_work.loss_book import LossBook, PodLoss, loses_work, with_shared
from gputally.accounting.lost_work.restart_losses import RestartLosses
from gputally.accounting.lost_work.work_since_checkpoint import PodWork, spans_of, stall_amounts, within, work_of
from gputally.accounting.pods.pods import Pods
from gputally.accounting.totals.totals import Totals
from gputally.frameworks.framework import OnLoss
from gputally.frameworks.groups import PodGroup, group_of, job_uid_of
from gputally.model.allocation import Outcome
from gputally.model.disruptions import PREEMPTIONS, Cause
from gputally.model.kube.kinds import Kind
from gputally.model.lost_work import WorkCheckpoint, WorkSpan
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

_KEEP_US: Final = US_PER_HOUR
"""How long losses are kept after their pod is gone; for as long, preemptions are."""
_UNCHARGED_US: Final = 600 * US_PER_SECOND
"""How long uncharged losses of deleted pods are kept: a preemption of them or their group may be observed later."""
_FORGET_EVERY_US: Final = 60 * US_PER_SECOND


class LostWorkPart(StatePart[PodLoss]):
    """Ended pods that lost work, or may have, by UID.

    `victims` has why pods were disrupted, by UID, which is compared with what was known at each `advance`; so are the
    existing pods that changed since the last one.
    """

    name = "lost-work"
    kinds = ()

    def __init__(
        self, totals: Totals, existing: Pods, jobs: Jobs, *, victims: Mapping[str, Cause], rules: Rules
    ) -> None:
        pods = existing.records
        self.checkpoints = Checkpoints(pods, rules)
        self.container_restarts = ContainerRestarts(pods, self.checkpoints, rules)
        self.groups = GroupIndex()
        self.book = LossBook(totals, rules.what_if_checkpoints_us)
        self.losses: Mapping[str, PodLoss] = self.book.known
        since_us = totals.accounting_start_us
        self.at_risk = AtRisk(
            pods, self.checkpoints, self.container_restarts, self.groups, rules=rules, since_us=since_us
        )
        self.restart_losses = RestartLosses(
            self.container_restarts,
            self.book,
            totals,
            checkpoints=self.checkpoints,
            shared=lambda uid: self._stated(group) if (group := self.groups.of(uid)) else (),
            rules=rules,
        )
        self._totals = totals
        self._pods: Mapping[str, PodRecord] = pods
        self._handover = existing.handover
        self._jobs = jobs
        self._causes = victims
        self._rules = rules
        self._causes_may_come_late = Kind.KUEUE_WORKLOADS in rules.watched
        """A Workload says why its pods were deleted: each deletion costs a document, which others need not pay."""
        self._known: dict[str, PodRecord] = {}
        self._victims: dict[str, Cause] = {}
        """All victims that are known, and why they were disrupted."""
        self._open: set[str] = set()
        """UIDs of victims whose end is not known, or what became of their group."""
        self._last_revisions: dict[str, int] = {}
        """Revision of a deleted pod's last state, until the ledger has it: only a later one corrects the loss."""
        self._next_forget_us = 0
        self._now_us = 0

    @property
    def parts(self) -> "tuple[ContainerRestarts, Checkpoints, LostWorkPart]":
        """This part, after those with the restarts of containers and with what pods state."""
        return self.container_restarts, self.checkpoints, self

    def pod_deleted(self, record: PodRecord, *, at_us: int) -> None:
        """A pod leaves the working state; its final record counts."""
        self._now_us = at_us
        uid = record.uid
        if uid in self.container_restarts.lost:
            self.restart_losses.account({uid: record}, at_us=at_us)
        self.restart_losses.revise(record, at_us=at_us)
        if self._may_lose(record):
            self._take(record, self.groups.of(uid) or group_of(record))
        if uid in self._handover.revised:
            self._last_revisions[uid] = record.revision
        self._drop(uid)

    def _may_lose(self, record: PodRecord) -> bool:
        """Whether a deleted pod may have lost work: most are no victims, and have done their part or work alone."""
        uid = record.uid
        if uid in self._causes or uid in self.losses or uid in self._victims:
            return True
        if self._causes_may_come_late or not record.node_uid:
            return True
        return outcome_of(record) is not Outcome.SUCCEEDED and bool(self.groups.of(uid) or group_of(record))

    def revised(self, records: Mapping[str, PodRecord]) -> None:
        """Allocations have new revisions: also those of deleted pods may be corrected, but not what they stated."""
        for uid, record in records.items():
            if record.revision <= self._last_revisions.get(uid, -1):
                continue  # it waits to be written, and is older than the pod's last state
            self.restart_losses.revise(self._pods.get(uid, record), at_us=self._now_us)
            if uid in self._pods or (loss := self.losses.get(uid)) is None:
                continue
            if work := _corrected(loss.work, record):
                self._keep(replace(loss, work=work))

    def account_restarts(self, now_us: int) -> None:
        """Account the runs of containers that ended, once their pods are accounted."""
        self.restart_losses.account(self._pods, at_us=now_us)

    def advance(self, now_us: int) -> None:
        """See `StatePart.advance`: account what changed since the last call."""
        self._now_us = now_us
        for uid in self._handover.changed:
            if record := self._pods.get(uid):
                self._pod_changed(record)
            else:  # a deleted pod whose node was not known yet
                self._drop(uid)
        self._handover.changed.clear()
        for uid in self.container_restarts.fresh & self.losses.keys() & self._pods.keys():
            self._pod_changed(self._pods[uid])  # it had ended with its node before its kubelet reported the restart
        for uid, cause in self._causes.items() - self._victims.items():
            self._add_victim(uid, cause)
        self.at_risk.advance(now_us)
        for (group, *_), victims in self._by_group().items():
            self._resolve(group, victims, now_us)
        if now_us >= self._next_forget_us:
            self._next_forget_us = now_us + _FORGET_EVERY_US
            self._forget(now_us)

    def drain(self) -> dict[str, PodLoss | None]:
        """See `StatePart.drain`."""
        return self.book.drain()

    def touch_all(self) -> None:
        """See `StatePart.touch_all`."""
        self.book.touch_all()

    def restore(self, documents: Iterable[PodLoss], *, at_us: int) -> None:
        """See `StatePart.restore`."""
        for each in documents:
            self.book.put(no_later(each, at_us, "noticed_us"))
            if each.cause is Cause.CONTAINER_RESTART:
                self.restart_losses.restore((each.work.uid,))
            elif each.is_victim:
                self._victims[each.work.uid] = each.cause
                if not each.is_final:
                    self._open.add(each.work.uid)

    def _drop(self, uid: str) -> None:
        self.groups.drop(uid)
        self.at_risk.drop(uid)
        self._known.pop(uid, None)

    def _pod_changed(self, record: PodRecord) -> None:
        before, uid = self._known.get(record.uid), record.uid
        self._known[uid] = record
        if before is None or before.labels != record.labels:
            self.groups.put(record)
        self.at_risk.invalidate(uid)
        if record.end_us is None and uid in self.losses:  # its node, with which it had ended, has registered again
            self._withdraw(uid)
            self.book.withdraw(uid, at_us=self._now_us)
            self._open.update({uid} & self._victims.keys())
        elif record.end_us is not None and (uid in self._causes or uid in self.losses):
            self._take(record, self.groups.of(uid))

    def _add_victim(self, uid: str, cause: Cause) -> None:
        """A disruption, or its cause, is known now; its victim may have ended before."""
        self._victims[uid] = cause
        record, loss = self._pods.get(uid), self.losses.get(uid)
        if record and record.end_us is None:
            self._open.add(uid)
        elif loss and loss.is_victim:
            for each in self.book.charged_to(uid):
                self._keep(replace(self.losses[each], cause=cause))
        elif record:
            self._take(record, self.groups.of(uid))
        elif loss and loses_work(loss.work, cause):
            self._open.add(uid)
            self._keep(replace(loss, is_victim=True, charged_to=uid, cause=cause))

    def _take(self, record: PodRecord, group: PodGroup | None) -> None:
        """Keep the work of an ended pod as it is known now."""
        uid, known = record.uid, self.losses.get(record.uid)
        work = _corrected(known.work, record) if known and record.left_us else self._work_of(record, group)
        cause = self._causes.get(uid)
        is_victim = work is not None and cause is not None and loses_work(work, cause)
        if not is_victim:
            self._withdraw(uid)
        if work is None or not (is_victim or known or _may_be_lost(work)):
            return
        if known is None:
            known = PodLoss(work=work, is_victim=is_victim, noticed_us=self._now_us)
        if cause and is_victim:
            self._victims.setdefault(uid, cause)
            known = replace(known, cause=cause)
        if is_victim and not known.is_final:
            self._open.add(uid)
        charged_to = uid if is_victim else known.charged_to if known.charged_to != uid else ""
        loss = replace(known, work=work, is_victim=is_victim, charged_to=charged_to)
        if not is_victim:
            loss = replace(loss, stalled=(), stalled_until_us=0, is_final=False, case="")
        self._keep(with_shared(loss, self.at_risk.stated_in(group)))

    def _work_of(self, record: PodRecord, group: PodGroup | None) -> PodWork | None:
        """The work of an existing pod, with the checkpoints that it states."""
        interval_us, works = declared_interval(record, self._rules), self._has_work(record)
        since_us, stated = self.container_restarts.since_us(record.uid), self.checkpoints.of(record.uid)
        return work_of(record, stated, group=group, interval_us=interval_us, resumed_us=since_us, has_work=works)

    def _withdraw(self, uid: str) -> None:
        """A pod is no victim, also if it has a cause that cost it no work: nothing is charged to it."""
        self._open.discard(uid)
        if uid not in self._causes:
            self._victims.pop(uid, None)
        for each in self.book.charged_to(uid) - {uid}:
            self._keep(replace(self.losses[each], charged_to=""))
        loss = self.losses.get(uid)
        if loss and loss.is_victim and loss.case and loss.work.group:
            self._reopen(loss.work.group, loss.case, but=uid)

    def _reopen(self, group: PodGroup, case: str, *, but: str) -> None:
        """One of the victims of a case proved to be none: the others are resolved again, as if it had never been one.

        What the group lost by it may be the loss of another of them, and so may be its own work.
        """
        for uid in self.book.of_group(group) & self._victims.keys() - {but}:
            loss = self.losses[uid]
            if loss.is_victim and loss.case == case:
                self._open.add(uid)
                self._keep(replace(loss, is_final=False))

    def _by_group(self) -> dict[tuple[PodGroup | None, bool, str], list[str]]:
        """The open victims of each group, those of preemptions and of earlier cases apart; without a group, None."""
        found: dict[tuple[PodGroup | None, bool, str], list[str]] = {}
        for uid in sorted(self._open):
            loss = self.losses.get(uid)
            if loss is None and uid not in self._pods:
                self._open.discard(uid)
            else:
                group, case = (loss.work.group, loss.case) if loss else (self.groups.of(uid), "")
                found.setdefault((group, self._victims[uid] in PREEMPTIONS, case), []).append(uid)
        return found

    def _resolve(self, group: PodGroup | None, victims: Sequence[str], now_us: int) -> None:
        """Decide what became of a group, once the ends of all of its victims are known."""
        ended = [uid for uid in victims if uid in self.losses]
        if group is None:
            for uid in ended:
                self._close(uid)
        elif len(ended) == len(victims):
            stated = self._stated(group)
            for uid in victims:
                self._keep(with_shared(self.losses[uid], stated))
            verdict = self._verdict(group, set(victims), now_us)
            self._charge(group, verdict, set(victims), to=victims[0])
            if verdict.is_final:
                case = self.losses[victims[0]].case or victims[0]
                self._close(victims[0], self._stalled(group, verdict, set(victims)), case=case)
                for uid in victims[1:]:
                    self._close(uid, case=case)

    def _verdict(self, group: PodGroup, victims: AbstractSet[str], now_us: int) -> GroupVerdict:
        kept = self.book.of_group(group)
        free = (self.losses[uid] for uid in kept - victims)
        others = [ended_member(each.work) for each in free if not each.charged_to or each.charged_to in victims]
        others += [present_member(self._pods[uid]) for uid in self.groups.members(group) - kept - self._victims.keys()]
        lost = [ended_member(self.losses[uid].work) for uid in victims]
        suspended_us = self._jobs.suspended_us(group.namespace, job_uid_of(group))
        return verdict_of(group.on_loss, lost, others, now_us=now_us, suspended_us=suspended_us)

    def _charge(self, group: PodGroup, verdict: GroupVerdict, victims: AbstractSet[str], *, to: str) -> None:
        """Count what the members that restarted lost with one of the victims, and take it back from others."""
        for uid in verdict.restarted - self.book.of_group(group):
            self._take(self._pods[uid], group)
        stated = self._stated(group)
        for uid in self.book.of_group(group) - victims:
            loss = self.losses[uid]
            if uid in verdict.restarted:
                self._keep(replace(with_shared(loss, stated), charged_to=to, cause=self._victims[to]))
            elif loss.charged_to in victims:
                self._keep(replace(loss, charged_to=""))

    def _stalled(self, group: PodGroup, verdict: GroupVerdict, victims: AbstractSet[str]) -> tuple[WorkSpan, ...]:
        """The running time of the members that waited, after what counted as such with earlier victims."""
        first_us = min(self.losses[uid].work.end_us for uid in victims)
        others = [uid for uid in self.book.of_group(group) - victims if self.losses[uid].work.end_us <= first_us]
        before_us = max((self.losses[uid].stalled_until_us for uid in others), default=0)
        stalls = [(max(from_us, before_us), to_us) for from_us, to_us in verdict.stalls]
        found: list[WorkSpan] = []
        for uid in verdict.waiting if stalls else ():
            loss, record = self.losses.get(uid), self._pods.get(uid)
            if loss:
                found += within(loss.work.spans, stalls)
            elif record and self._has_work(record):
                found += within(spans_of(record, until_us=stalls[-1][1]), stalls)
        return tuple(found)

    def _has_work(self, record: PodRecord) -> bool:
        return has_work(record, self.checkpoints.of(record.uid), self._rules)

    def _close(self, uid: str, stalled: Collection[WorkSpan] = (), *, case: str = "") -> None:
        """What became of the group of a victim is known."""
        self._open.discard(uid)
        amounts = stall_amounts(stalled, from_us=self._totals.accounting_start_us)
        self._keep(
            replace(
                self.losses[uid],
                is_final=True,
                case=case,
                stalled=tuple((*labels, amount) for (_, labels), amount in amounts.items()),
                stalled_until_us=max((each.end_us for each in stalled), default=0),
            )
        )

    def _stated(self, group: PodGroup) -> list[WorkCheckpoint]:
        """The checkpoints that the pods of a group state, in order; pods that go on alone share none."""
        if group.on_loss is OnLoss.CONTINUE:
            return []
        stating = self.groups.members(group) & self.checkpoints.known.keys()
        stated = [each for uid in stating if (each := self.checkpoints.of(uid).stated)]
        stated += [each for uid in self.book.of_group(group) for each in self.losses[uid].work.stated]
        return sorted(stated, key=lambda each: each.at_us)

    def _keep(self, loss: PodLoss) -> None:
        self.book.keep(loss, at_us=self._now_us)

    def _forget(self, now_us: int) -> None:
        """Drop what can change no more, after the revisions that no drain has handed over yet."""
        self.revised(self._handover.revised)
        waiting = self._last_revisions.keys() & self._handover.revised.keys()
        self._last_revisions = {uid: self._last_revisions[uid] for uid in waiting}
        known = self._causes.keys() | self._open | self.losses.keys()
        self._victims = {uid: cause for uid, cause in self._victims.items() if uid in known}
        busy = {group for group, *_ in self._by_group() if group}
        over = {
            uid for uid, loss in self.losses.items() if self._is_over(loss, now_us, is_busy=loss.work.group in busy)
        }
        forgotten = [uid for uid in over if self.book.charged_with(self.losses[uid]) <= over]
        for uid in forgotten:
            self.book.forget(uid)
        self.restart_losses.forget()

    def _is_over(self, loss: PodLoss, now_us: int, *, is_busy: bool) -> bool:
        """Whether nothing can change about the loss of a pod; in a `busy` group, victims are not resolved yet."""
        if loss.work.uid in self._pods or (is_busy and loss.charged_to):
            return False
        return loss.noticed_us < now_us - (_KEEP_US if loss.charged_to or is_busy else _UNCHARGED_US)


def _may_be_lost(work: PodWork) -> bool:
    """Whether the work of an ended pod may prove to be lost, with its group or for a cause that is reported late."""
    return not work.succeeded if work.group else bool(work.spans) and not work.ended_itself


def _corrected(old: PodWork, record: PodRecord) -> PodWork | None:
    """The work of a deleted pod by its corrected allocations; it states nothing any more."""
    kept = {field: getattr(old, field) for field in ("group", "interval_us", "resumed_us", "has_work")}
    work = work_of(record, NOTHING, **kept)
    return replace(work, saved=old.saved) if work else None
