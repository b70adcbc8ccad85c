"""Counts each disruption of a pod with GPUs once, by its cause, and follows the steps until it is replaced."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.coverage import Coverage
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.disruptions.causes import reported_of, verdict_of
from gputally.accounting.disruptions.counters import DisruptionCounts
from gputally.accounting.disruptions.job_preemptions import JobPreemptions, RepeatVictims
from gputally.accounting.disruptions.kueue_evictions import QueueEvictions
from gputally.accounting.disruptions.node_signals import NodeSignals
from gputally.accounting.disruptions.preemptions import Preemptions
from gputally.accounting.disruptions.replacements import Replacements
from gputally.accounting.disruptions.unused_gpus import UnusedGpus
from gputally.accounting.disruptions.victims import facts_of, new_victim, only_preempted
from gputally.accounting.jobs.failure_policy import uses_retry
from gputally.accounting.jobs.jobs import Jobs
from gputally.accounting.nodes.nodes import Nodes
from gputally.accounting.pods.pods import Pods
from gputally.accounting.policy.policy import Policy
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.accounting.totals.totals import Totals
from gputally.model.disruptions import JOB_PREEMPTIONS, QUEUE_CAUSES, Cause, Disrupted, Victim
from gputally.model.kube.kinds import Kind
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_HOUR

_KEEP_US = US_PER_HOUR
"""How long a disruption waits for its replacement, or for late reports of its node."""


class DeletingPods:
    """UIDs, by namespace, of the existing pods in `records` that are being deleted."""

    def __init__(self, records: Mapping[str, PodRecord]) -> None:
        self._records = records
        self._uids: dict[str, set[str]] | None = None
        """None before the first look: pods of an earlier process may be among them."""

    def note(self, record: PodRecord, *, is_over: bool) -> None:
        """The deletion of a pod was requested; it `is_over` if the pod has ended, or is gone, or its cause is known."""
        namespaces = self._all()
        if not (is_over or record.end_us is not None):
            namespaces.setdefault(record.namespace, set()).add(record.uid)
        elif (uids := namespaces.get(record.namespace)) and record.uid in uids:
            uids.remove(record.uid)
            if not uids:
                del namespaces[record.namespace]

    def of(self, namespaces: Collection[str]) -> Iterator[PodRecord]:
        """The deleting pods of these namespaces, each as it is when it is reached."""
        for namespace in namespaces:
            for uid in sorted(self._all().get(namespace, ())):
                if record := self._records.get(uid):
                    yield record

    def _all(self) -> dict[str, set[str]]:
        if self._uids is None:
            self._uids = {}
            for record in self._records.values():
                if record.deletion_us is not None and record.end_us is None:
                    self._uids.setdefault(record.namespace, set()).add(record.uid)
        return self._uids


class ClusterState(NamedTuple):
    """The parts that say why and when pods lose their GPUs."""

    nodes: Nodes
    jobs: Jobs
    coverage: Coverage
    policy: Policy


class Disruptions(StatePart[Struct]):
    """Why the victims lost their GPUs, and what followed.

    With `announces`, new preemptions of jobs are to be delivered to a webhook.
    """

    name = "disruption"
    kinds = ()

    def __init__(
        self,
        totals: Totals,
        pods: Pods,
        cluster: ClusterState,
        limiter: LabelLimiter,
        *,
        evictions: QueueEvictions,
        preemptions: Preemptions,
    ) -> None:
        self.announces = False
        self.destroying: dict[str, Cause] = {}
        """The causes of those that destroy work, by victim UID: who deletes a pod wants its end."""
        self.signals = NodeSignals(self._node_changed)
        self.repeat_victims = RepeatVictims(limiter.limit)
        self.unused = UnusedGpus(pods.on_node, preemptions.is_preemptor)
        self._counts = DisruptionCounts(totals, limiter.limit)
        self._replacements = Replacements(pods.on_node)
        self._victims = preemptions.victims
        self._pods = pods
        self._job_preemptions = JobPreemptions(lambda: cluster.coverage.complete_us(Kind.PODS))
        self._deleting = DeletingPods(pods.records)
        self._cluster = cluster
        self._evictions = evictions
        self._preemptions = preemptions

    def restore(self, documents: Iterable[Struct], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.restore`; the victims were restored before."""
        known = [each for each in self._victims.known.values() if each.is_disruption]
        for each in known:
            self._replacements.follow(each)
            self._note_cause(each)
            self.unused.follow(each)
        self._job_preemptions.restore(known)

    def concern(self, record: PodRecord) -> bool:
        """Whether a pod that goes on is a victim after all, or may follow one; False for most pods."""
        if record.uid in self._victims.known or record.node in self.unused.nodes:
            return True
        return self._replacements.may_be_completed_by(record)

    def pod_changed(self, record: PodRecord, *, at_us: int, is_gone: bool = False) -> None:
        """Update from a changed pod, as a victim or as one that follows a victim."""
        if record.node in self.unused.nodes:
            self.unused.bound(record)
        for each in self._replacements.after(record):
            self._followed(each, at_us)
        if is_gone:
            self._replacements.leave(record, at_us=at_us)
        self._judge(record, at_us, is_gone=is_gone)

    def _followed(self, better: Victim, at_us: int) -> None:
        """Keep what followed a disruption: its preemptor may have become known since."""
        known = self._victims.known[better.victim_uid]
        self._keep(replace(better, by=known.by), at_us=at_us)

    def advance(self, now_us: int) -> None:
        """Judge again those that a queue turns out to have evicted; forget those older than an hour, without pods."""
        self._judge_evictions(now_us)
        for uid, each in tuple(self._victims.known.items()):
            noticed_us = max(each.noticed_us, each.by.noticed_us) if each.by else each.noticed_us
            if noticed_us < now_us - _KEEP_US and uid not in self._pods.records:
                self._follow_no_longer(each)
                self._preemptions.forget(each)
                self._victims.forget(uid)
        self._replacements.advance(now_us)
        self._job_preemptions.advance()

    def _judge(self, record: PodRecord, at_us: int, *, is_gone: bool) -> None:
        reported = reported_of(record, self._suspended_us, self._evicted, is_gone=is_gone)
        if record.deletion_us is not None:
            self._deleting.note(record, is_over=is_gone or reported is not None)
        if reported:
            self._keep(self._renewed(record, reported, at_us), at_us=at_us)
        elif (known := self._victims.known.get(record.uid)) and known.is_disruption:
            self._withdraw(known, record, at_us)

    def _renewed(self, record: PodRecord, reported: Disrupted, at_us: int) -> Victim:
        known = self._victims.known.get(record.uid)
        read: dict[str, Any] = {
            "reported": reported.cause,
            "decided_us": reported.at_us,
            "named": reported.by,
            "uses_retry": self._uses_retry(record),
        }
        if known and known.is_disruption:
            new = replace(known, **facts_of(record), **read)
            if new == known:  # what others than its pod change comes by itself
                return known
        else:
            violated = self._cluster.policy.covered.violated(record, reported, at_us)
            read |= {"cause": reported.cause, "budget_violated": violated}
            new = new_victim(record, before=known, at_us=at_us, **read)
        return self._in_job(self._judged(self._replacements.reused(new)), at_us)

    def _in_job(self, each: Victim, at_us: int) -> Victim:
        """The disruption with the preemption of the job that it is part of, which never changes."""
        if each.job_preemption or each.cause not in JOB_PREEMPTIONS:
            return each
        part = self._job_preemptions.part_of(each, at_us=at_us, announces=self.announces)
        if part.id == each.victim_uid:
            self.repeat_victims.preempted(each)
        return replace(each, job_preemption=part.id, announced=part.is_announced, began_us=part.began_us)

    def _uses_retry(self, record: PodRecord) -> bool:
        policy = self._cluster.jobs.policy_of(record) if record.preempted_us is not None else None
        return policy is not None and uses_retry(policy, record)

    def _suspended_us(self, record: PodRecord) -> int | None:
        """When the Job of a pod was suspended, as far as that may be why the pod was deleted; decided once.

        A queue also stops a Job of which a preempted pod is missing: that follows from the preemption.
        """
        known = self._victims.known.get(record.uid)
        is_other = known.reported is Cause.DELETION if known else self._replacements.misses_preempted(record)
        return None if is_other else self._cluster.jobs.suspension_of(record)

    def _evicted(self, record: PodRecord, deleted_us: int) -> Disrupted | None:
        """The eviction by a queue for which a pod was deleted; decided once, as its workload may be evicted again."""
        known = self._victims.known.get(record.uid)
        if known and known.reported in QUEUE_CAUSES:
            return Disrupted(known.reported, known.decided_us, known.named)
        return self._evictions.of_pod(record, deleted_us)

    def _judge_evictions(self, now_us: int) -> None:
        """A queue may report an eviction after the pods were deleted for it."""
        fresh = self._evictions.fresh
        for record in self._deleting.of(fresh):
            self._judge(record, now_us, is_gone=False)
        deleted = (each for each in self._victims.known.values() if each.victim_namespace in fresh) if fresh else ()
        for each in [each for each in deleted if each.reported in (Cause.DELETION, Cause.QUEUE_EVICTION)]:
            if found := self._evictions.of_deletion(each):
                better = replace(each, reported=found.cause, decided_us=found.at_us, named=found.by)
                self._keep(self._in_job(self._judged(better), now_us), at_us=now_us)
        fresh.clear()

    def _judged(self, each: Victim) -> Victim:
        cause, is_certain = verdict_of(
            each.reported,
            signal=self.signals.get(each.node_uid),
            is_spot=self._cluster.nodes.is_spot(each.node_uid),
            released_us=each.released_us,
        )
        if cause is each.cause and is_certain == each.is_certain:
            return each
        return replace(each, cause=cause, is_certain=is_certain)

    def _node_changed(self, node_uid: str, at_us: int) -> None:
        """A node shows a new signal, which may have been observed after the ends of its pods."""
        for each in [each for each in self._victims.known.values() if each.node_uid == node_uid]:
            self._keep(self._judged(each), at_us=at_us)

    def _keep(self, each: Victim, *, at_us: int) -> None:
        known = self._victims.known.get(each.victim_uid)
        if known == each:
            return
        if known:
            self._replacements.forget(known)
        each = self._counts.recounted(each, at_us=at_us)
        self._victims.keep(each)
        self._note_cause(each)
        self._replacements.follow(each)
        if each.cause is Cause.QUEUE_PREEMPTION:
            self._queue_preempted(each, at_us)
        self.unused.follow(each)

    def _queue_preempted(self, each: Victim, at_us: int) -> None:
        """Only its Workload says which pods are those of the preemptor, so without these it has none."""
        if self._evictions.is_watched:
            priority = self._evictions.priority_of(each)
            self._preemptions.queue_preempted(each, priority=priority, at_us=at_us)

    def _note_cause(self, each: Victim) -> None:
        if each.cause is Cause.DELETION:
            self.destroying.pop(each.victim_uid, None)
        else:
            self.destroying[each.victim_uid] = each.cause

    def _withdraw(self, known: Victim, record: PodRecord, at_us: int) -> None:
        """The pod had ended by itself, or never had its GPUs: then a scheduler preempted it nevertheless.

        Others may still be preempted with it.
        """
        self._counts.withdraw(known, at_us=at_us)
        self._follow_no_longer(known)
        if known.by and known.by.queue_rule is None:
            self._victims.keep(only_preempted(record, before=known, at_us=at_us))
        else:
            self._preemptions.withdraw(known, at_us=at_us)
            self._victims.withdraw(known.victim_uid)

    def _follow_no_longer(self, known: Victim) -> None:
        self.destroying.pop(known.victim_uid, None)
        self._replacements.forget(known)
        self.unused.forget(known)
