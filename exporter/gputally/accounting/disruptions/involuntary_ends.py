"""All that follows from pods losing their GPUs involuntarily."""

from typing import Any, NamedTuple

from gputally.accounting.base.coverage import Coverage
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.disruptions.disruptions import Disruptions, Surroundings
from gputally.accounting.disruptions.preemptions import Preemptions
from gputally.accounting.disruptions.queues.queue_evictions import QueueEvictions
from gputally.accounting.disruptions.queues.queue_preemptors import QueuePreemptors
from gputally.accounting.disruptions.reclaim_events import ReclaimEvents
from gputally.accounting.disruptions.repeat_victims import RepeatVictims
from gputally.accounting.jobs.jobs import Jobs
from gputally.accounting.lost_work.lost_work_part import LostWorkPart
from gputally.accounting.nodes.nodes import Nodes
from gputally.accounting.pods.pods import Pods
from gputally.accounting.policy.covered_pods import CoveredPods
from gputally.accounting.policy.disruption_budgets import DisruptionBudgets
from gputally.accounting.policy.policy import Policy
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.accounting.totals.totals import Totals
from gputally.model.disruptions.disruption import Disruption
from gputally.model.kube import Kind, Pod
from gputally.model.pod import PodRecord
from gputally.model.price import Purchase
from gputally.model.rules import Rules


class Others(NamedTuple):
    """What the ends of pods also depend on."""

    nodes: Nodes
    jobs: Jobs
    coverage: Coverage
    policy: Policy


class InvoluntaryEnds:
    """Disruptions of any cause, the preemptors of those that the scheduler decided, and the work lost."""

    def __init__(self, totals: Totals, pods: Pods, limiter: LabelLimiter, others: Others, *, rules: Rules) -> None:
        self.repeat_victims = RepeatVictims(limiter.limit)
        self.budgets = DisruptionBudgets(lambda: others.coverage.complete_us(Kind.DISRUPTION_BUDGETS))
        self._covered = CoveredPods(self.budgets)
        self._evictions = QueueEvictions()
        self._watches_queues = Kind.KUEUE_WORKLOADS in rules.watched
        self._workloads = QueuePreemptors(rules, self._evictions.pods, others.policy.tier_of, pods.namespaces.tenant_in)
        self.preemptions = Preemptions(
            totals, pods.as_preemptor, pods.nominee, limiter.limit, workloads=self._workloads, on_node=pods.on_node
        )
        other = Surroundings(
            is_spot=lambda uid: _is_spot(others.nodes, uid),
            policy_of=others.jobs.policy_of,
            suspended_us=others.jobs.suspension_of,
            complete_us=lambda: others.coverage.complete_us(Kind.PODS),
            violates=self._covered.violated,
            is_preemptor=self.preemptions.is_preemptor,
            evictions=self._evictions,
            job_preempted=self.repeat_victims.preempted,
            by_queue=self._queue_preempted,
            withdrawn=lambda uid, at_us: self.preemptions.withdraw(uid, at_us=at_us),
        )
        self.disruptions = Disruptions(totals, pods, other, limit=limiter.limit)
        self.lost_work = LostWorkPart(totals, pods, others.jobs, victims=self.disruptions.destroying, rules=rules)
        self._reclaims = ReclaimEvents(others.nodes, self.disruptions.signals)

    @property
    def parts(self) -> tuple[StatePart[Any], ...]:
        """The parts of the state."""
        own = (self.preemptions, self.repeat_victims, self.disruptions, self.disruptions.signals, self._reclaims)
        queues = (self._workloads, self._evictions, self._evictions.pods) if self._watches_queues else ()
        return self.budgets, self._covered, *queues, *own, *self.lost_work.parts

    def _queue_preempted(self, each: Disruption, at_us: int) -> None:
        """Only its Workload says which pods are those of the preemptor, so without these it has none."""
        if self._watches_queues:
            priority = self._evictions.priority_of(each)
            self.preemptions.queue_preempted(each, priority=priority, at_us=at_us)

    def last_seen(self, pod: Pod, *, at_us: int) -> None:
        """The last state of a deleted pod, whose record is still there."""
        self.lost_work.last_seen(pod, at_us=at_us)
        self._covered.last_seen(pod)

    def drain_disruptions(self) -> dict[str, Disruption | None]:
        """New and changed disruptions since the last call, and the restarts of containers that lost work, by key."""
        return self.disruptions.drain_counted() | self.lost_work.restart_losses.drain_rows()

    def pod_changed(self, record: PodRecord, *, at_us: int, is_gone: bool = False) -> None:
        """Update from a changed or deleted pod."""
        self.preemptions.pod_changed(record, at_us=at_us, is_gone=is_gone)
        self.preemptions.bound(record)
        self.disruptions.pod_changed(record, at_us=at_us, is_gone=is_gone)
        if is_gone:
            self.lost_work.pod_deleted(record, at_us=at_us)


def _is_spot(nodes: Nodes, uid: str) -> bool:
    facts = nodes.accounts[uid].record.facts if uid in nodes.accounts else ()
    return bool(facts) and facts[-1][1].asset.purchase is Purchase.SPOT
