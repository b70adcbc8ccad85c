"""Pods that lost their GPUs involuntarily: their disruptions, their preemptors and the work they lost."""

from typing import Any

from gputally.accounting.base.state_part import StatePart
from gputally.accounting.disruptions.disruptions import ClusterState, Disruptions
from gputally.accounting.disruptions.kueue_evictions import QueueEvictions
from gputally.accounting.disruptions.kueue_preemptors import QueuePreemptors
from gputally.accounting.disruptions.node_signals import ReclaimEvents
from gputally.accounting.disruptions.preemptions import Preemptions
from gputally.accounting.lost_work.lost_work import LostWorkPart
from gputally.accounting.pods.pods import Pods
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.accounting.totals.totals import Totals
from gputally.model.disruptions import Victim
from gputally.model.kube.kinds import Kind
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules


class DisruptedPods:
    """Disruptions of any cause, the preemptors of those that the scheduler decided, and the work lost."""

    def __init__(
        self, totals: Totals, pods: Pods, limiter: LabelLimiter, cluster: ClusterState, *, rules: Rules
    ) -> None:
        self._evictions = QueueEvictions(is_watched=Kind.KUEUE_WORKLOADS in rules.watched)
        self._workloads = QueuePreemptors(
            rules, self._evictions.pods, cluster.policy.tier_of, pods.namespaces.tenant_in
        )
        self.preemptions = Preemptions(totals, pods, limiter, workloads=self._workloads)
        self.victims = self.preemptions.victims
        self.disruptions = Disruptions(
            totals, pods, cluster, limiter, evictions=self._evictions, preemptions=self.preemptions
        )
        self.lost_work = LostWorkPart(totals, pods, cluster.jobs, victims=self.disruptions.destroying, rules=rules)
        self._reclaims = ReclaimEvents(cluster.nodes, self.disruptions.signals)

    @property
    def parts(self) -> tuple[StatePart[Any], ...]:
        """The parts of the state."""
        found = self.disruptions
        own = (self.victims, self.preemptions, found.repeat_victims, found, found.signals, self._reclaims)
        queues = (self._workloads, self._evictions, self._evictions.pods) if self._evictions.is_watched else ()
        return *queues, *own, *self.lost_work.parts

    def drain_victims(self) -> dict[str, Victim | None]:
        """New and changed victims since the last call, and the restarts of containers that lost work, by key."""
        return self.victims.drain_recorded() | self.lost_work.restart_losses.drain_rows()

    def pod_changed(self, record: PodRecord, *, at_us: int, is_gone: bool = False) -> None:
        """Update from a changed or deleted pod.

        One that goes on, and is no victim, matters only where somebody waits for what follows a disruption.
        """
        goes_on = record.deletion_us is None and record.end_us is None and not is_gone
        if goes_on and record.node not in self.preemptions.by_queue and not self.disruptions.concern(record):
            return
        if record.node in self.preemptions.by_queue:
            self.preemptions.bound(record)
        self.disruptions.pod_changed(record, at_us=at_us, is_gone=is_gone)
        if record.preempted_us is not None:
            self.preemptions.pod_changed(record, at_us=at_us, is_gone=is_gone)
        if is_gone:
            self.lost_work.pod_deleted(record, at_us=at_us)
