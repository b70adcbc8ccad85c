"""Usage reports of agents, accounted up to their watermarks."""

from collections.abc import Callable, Iterator

from gputally.accounting.changes import Saved
from gputally.accounting.facts.node_history import Reclassified
from gputally.accounting.nodes.nodes import Nodes
from gputally.accounting.pods.deleted import Departed
from gputally.accounting.pods.pods import Pods
from gputally.accounting.terms.tenant import UNASSIGNED
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.accounting.totals.totals import Totals
from gputally.accounting.usage.bounds import Allowance, UsageRoom, gpus_of
from gputally.accounting.usage.matching import Difference, difference, narrowed
from gputally.accounting.usage.posting import UsagePosting
from gputally.accounting.usage.reported_hours import AssignmentUsage, PendingRows, ReportContext, UnallocatedUsage
from gputally.model.observation import UsageReported
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_HOUR, US_PER_SECOND
from gputally.model.usage import AssignmentRecord, UsageCursor, UsageReport

_SILENT_US = 7 * 24 * US_PER_HOUR
"""After this time without a report, an agent's earlier reports are final."""
_FRESH_US = 60 * US_PER_SECOND
"""Maximum age of a comparison, and of the kubelet's report in it."""
_ROUND_US = 600 * US_PER_SECOND


class FleetLookup:
    """Pods, existing and deleted, and the labels of unknown ones."""

    def __init__(self, pods: Pods, nodes: Nodes, limiter: LabelLimiter, departed: Departed) -> None:
        self._pods = pods
        self._nodes = nodes
        self._limiter = limiter
        self._departed = departed

    def pod(self, uid: str) -> PodRecord | None:
        """The pod, also if it is deleted."""
        return self._pods.records.get(uid) or self._departed.get(uid)

    def pods_on(self, node: str) -> Iterator[PodRecord]:
        """The pods of the node, including deleted ones."""
        yield from self._pods.on_node(node)
        yield from self._departed.on_node(node)

    def unmatched_labels(self, assignment: AssignmentRecord) -> tuple[str, str]:
        """The exported (tenant, gpu_model) for an unknown pod: from its namespace and its node."""
        namespaces, name = self._pods.namespaces, assignment.key.namespace
        tenant = (
            namespaces.tenant_in(name) if name in namespaces.known_marks else UNASSIGNED
        )  # an agent may invent names
        return self._limiter.limit("tenant", tenant), self._nodes.labels_at(assignment.node)[0]


class NodeUsage:
    """The usage of one node; its agent's last report came at `at_us`, in its run `epoch`.

    All that the agent reported up to its `revision` is accounted; 0 if that is not known.
    """

    def __init__(self, lookup: FleetLookup, posting: UsagePosting, pending: PendingRows, *, at_us: int) -> None:
        self.at_us = at_us
        self.epoch = ""
        self.revision = 0
        self.allowance = Allowance(at_us=at_us)
        self.held = AssignmentUsage(lookup, posting, pending)
        self.unallocated = UnallocatedUsage(posting, pending)
        self.difference: Difference | None = None

    def continues(self, report: UsageReport) -> bool:
        """Whether the report has all that is not accounted yet, or is at least whole."""
        return not report.since or (report.epoch == self.epoch and report.since <= self.revision)

    def begin(self, report: UsageReport, *, at_us: int) -> None:
        """A report is about to be accounted."""
        if report.epoch != self.epoch:
            self.epoch, self.revision = report.epoch, 0
        self.at_us = at_us

    def close(self) -> None:
        """Close the usage of an agent that will not report any of it again."""
        self.held.close()
        self.unallocated.close()


class Usage:
    """The nodes with agents. The usage of an assignment is posted once its pod is known."""

    def __init__(self, totals: Totals, limiter: LabelLimiter, pods: Pods, nodes: Nodes) -> None:
        self.pending = PendingRows()
        self.restarts = 0
        """Reports from a new run of an agent, whose amounts restarted at 0."""
        self._departed = Departed()
        self._nodes_known = nodes
        self._pods = pods
        self._posting = UsagePosting(totals)
        self._lookup = FleetLookup(pods, nodes, limiter, self._departed)
        self._nodes: dict[str, NodeUsage] = {}
        self._next_round_us = 0

    def seen(self, seen: UsageReported, *, complete_us: int, reconcile: Callable[[], None]) -> None:
        """Process a report. All pod changes before `complete_us` were observed, and `reconcile` accounts them.

        While anything in it is rejected, its agent is asked again for all since the last report without a fault.
        """
        report, at_us = seen.report, seen.at_us
        node = self._node(report.node, at_us=at_us)
        if not node.continues(report):
            return
        self.restarts += node.epoch not in ("", report.epoch)
        node.begin(report, at_us=at_us)
        known, faults = self._nodes_known.most_physical(report.node), self.pending.fault_count
        node.allowance.advance(at_us, gpus=gpus_of((gpu.uuid for gpu in report.gpus), known=known))
        context = ReportContext.of(report, UsageRoom(report.now_us, node.allowance), at_us=at_us)
        labels = self._nodes_known.labels_at(report.node)
        node.unallocated.add_counted(context)
        node.held.reported(report.assignments, context)
        if node.held.is_undecided:
            reconcile()
            node.held.decide(complete_us=complete_us, at_us=at_us)
        node.unallocated.reported(report.gpus, context, labels)
        self._narrow(node, report.node, at_us=at_us)
        self._compare(node, report, context, pool=labels[1])
        if self.pending.fault_count == faults:
            node.revision = report.revision

    def cursor(self, name: str) -> UsageCursor | None:
        """The last report of a node that is accounted; None if its agent is to report everything."""
        node = self._nodes.get(name)
        return UsageCursor(node.epoch, node.revision) if node and node.revision else None

    def left(self, record: PodRecord, *, at_us: int, has_agent: bool) -> None:
        """A pod was deleted; its node's agent may still report it, also one that never reported before.

        Labels of its node may change it too: until the GPUs are described, and while a label may expire before the
        pod's end.
        """
        if record.segments:
            self._departed.add(
                record,
                at_us=at_us,
                agent=has_agent or record.node in self._nodes,
                labels=not self._nodes_known.are_labels_final(record),
            )

    def reclassify(self, changed: Reclassified, *, at_us: int) -> None:
        """Update deleted pods whose classification or price changed."""
        departed = tuple(self._departed.on_node(changed.name))
        for record in departed:
            better = self._nodes_known.reclassified(record, changed)
            if better is not record:
                self._departed.revise(self._pods.amended(record, better, at_us=at_us, since_us=changed.since_us))
        self._departed.described(changed.name, self._nodes_known.are_labels_final)

    def advance(self, now_us: int) -> None:
        """Drop, now and then, what cannot be reported any more."""
        if now_us < self._next_round_us:
            return
        self._next_round_us = now_us + _ROUND_US
        self._departed.advance(now_us)
        for name in [name for name, node in self._nodes.items() if node.at_us < now_us - _SILENT_US]:
            self._nodes.pop(name).close()

    def allocation_differences(self, now_us: int) -> dict[tuple[str, str], int]:
        """µGPU by exported pool and the only side that reports them as allocated, of all recently reporting nodes."""
        found: dict[tuple[str, str], int] = {}
        for each in filter(None, (node.difference for node in self._nodes.values())):
            if each.at_us >= now_us - _FRESH_US:
                for side, quantity in (("api_only", each.api_only), ("device_only", each.device_only)):
                    found[each.pool, side] = found.get((each.pool, side), 0) + quantity
        return found

    def is_idle(self, record: PodRecord) -> bool:
        """Whether the pod was measured lately, and used less than 2 % of its GPUs; what is not measured is not idle."""
        node = self._nodes.get(record.node)
        return node is not None and node.held.is_idle(record.uid)

    def keeps(self, uid: str) -> bool:
        """Whether a deleted pod may still be amended."""
        return self._departed.get(uid) is not None

    def touch_all(self) -> None:
        """Mark every kept deleted pod as changed."""
        self._departed.touch_all()

    def drain_departed(self) -> dict[str, PodRecord | None]:
        """Deleted pods that were added or dropped since the last call."""
        return self._departed.drain()

    def restore(self, saved: Saved, *, has_agent: Callable[[str], bool]) -> None:
        """Restore what an earlier process posted."""
        held, unallocated, at_us = saved.assignment_usage, saved.unallocated_usage, saved.at_us
        reporting = {row.assignment.node for row in held} | {each.node for each in unallocated}
        for record in sorted(saved.departed, key=lambda each: each.remembered_us or 0):
            agent = record.node in reporting or has_agent(record.node)
            labels = not self._nodes_known.are_labels_final(record)
            self._departed.restore(record, agent=agent, labels=labels)
        for row in sorted(held, key=lambda row: row.assignment.seen_us):
            node = self._node(row.assignment.node, at_us=at_us)
            node.held.restore(row)
            node.epoch = row.assignment.key.epoch
        for each in unallocated:
            node = self._node(each.node, at_us=at_us)
            node.unallocated.restore(each)
            node.epoch = node.epoch or each.key.epoch

    def _node(self, name: str, *, at_us: int) -> NodeUsage:
        if name not in self._nodes:
            self._nodes[name] = NodeUsage(self._lookup, self._posting, self.pending, at_us=at_us)
        return self._nodes[name]

    def _narrow(self, node: NodeUsage, name: str, *, at_us: int) -> None:
        """Narrow the observation gaps of ended pods by the agent's observations."""
        for pod in [pod for pod in self._departed.on_node(name) if pod.gap]:
            assignments = [
                each.assignment for each in node.held.assignments.values() if each.assignment.pod_uid == pod.uid
            ]
            if pod.gap and (gap := narrowed(pod.gap, assignments)) != pod.gap:
                revised = self._pods.narrowed(pod, gap, at_us=at_us)
                if revised is not pod:
                    self._departed.revise(revised)

    def _compare(self, node: NodeUsage, report: UsageReport, context: ReportContext, *, pool: str) -> None:
        """Compare the kubelet's recent assignments with the allocations of the API server."""
        node.difference = None
        if report.allocations_us is None or report.allocations_us < report.now_us - _FRESH_US:
            return
        reported_us = report.allocations_us - context.ahead_us
        assignments = [held.assignment for key, held in node.held.assignments.items() if key.epoch == report.epoch]
        pods = {pod.uid: pod for pod in self._pods.on_node(report.node)}
        node.difference = difference(pods, assignments, pool=pool, reported_us=reported_us, at_us=context.at_us)
        needed = [each.assignment.pod_uid for each in node.held.assignments.values()]
        if None not in needed:
            self._departed.forget(report.node, reported_us=reported_us, needed=needed)
