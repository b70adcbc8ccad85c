"""Posts changed pods to the totals, to their nodes and to the ledger: only the difference between two records."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping

from gputally.accounting.changes import Known, known_of
from gputally.accounting.facts.allocation import held
from gputally.accounting.jobs.jobs import Jobs
from gputally.accounting.nodes.nodes import Nodes
from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Totals
from gputally.accounting.wait_book.book import WaitBook
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND

SCHEDULING_BOUNDS_S = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
"""Upper bounds (s) of the time-to-schedule histogram: page-level delays finely, queueing for hours coarsely."""
BEYOND = "+Inf"
_BOUNDS = (*map(str, SCHEDULING_BOUNDS_S), BEYOND)


class Posting:
    """Keeps the totals equal to the sum over all posted records."""

    def __init__(self, totals: Totals, jobs: Jobs, waits: WaitBook) -> None:
        self._totals = totals
        self.jobs = jobs
        self._waits = waits

    def post(self, before: PodRecord | None, after: PodRecord, *, kept: int, at_us: int) -> PodRecord:
        """Replace `before` by `after` in the totals; the first `kept` segments of both are equal.

        Returns `after`, with how it counts as a job.
        """
        self._totals.allocate(before.segments[kept:] if before else (), after.segments[kept:], at_us=at_us)
        if before is None or before.scheduled_us is None:
            self._scheduled(after, at_us=at_us)
            self._waits.bound(after, at_us=at_us)
        if after.gap or (before and before.gap):  # few
            self._gap(before, after, at_us=at_us)
        return self.jobs.post(before, after, kept=kept, at_us=at_us)

    def _scheduled(self, record: PodRecord, *, at_us: int) -> None:
        """Count the time from creation to binding, once, for pods bound since the accounting start."""
        if record.scheduled_us is None or record.scheduled_us < self._totals.accounting_start_us:
            return
        waited_us = max(0, record.scheduled_us - record.created_us)
        tier = record.terms[-1].labels[0]
        bound = _BOUNDS[bisect_left(SCHEDULING_BOUNDS_S, -(-waited_us // US_PER_SECOND))]  # seconds, rounded up
        self._totals.count(Total.SCHEDULED, (tier, bound), 1, at_us=at_us)
        self._totals.count(Total.SCHEDULING_TIME, (tier,), waited_us, at_us=at_us)

    def _gap(self, before: PodRecord | None, after: PodRecord, *, at_us: int) -> None:
        """Post the part of an observation gap that is not charged."""
        if before and (before.gap, before.limited) == (after.gap, after.limited):
            return
        for record, sign in ((before, -1), (after, 1)):
            if record and record.gap and record.terms:
                span = (record.gap.from_us, record.gap.to_us)
                quantity = sum(quantity for _, quantity in held(record, record.terms[-1]))
                self._totals.accrue(Total.UNOBSERVED, record.terms[-1].labels, sign * quantity, span, at_us=at_us)


def update_nodes(nodes: Nodes, before: PodRecord | None, record: PodRecord, *, kept: int, at_us: int) -> None:
    """Update the nodes' held segments; a pod moves from a stand-in to its node once that is known."""
    old = before.segments if before else ()
    if before and before.node_uid and before.node_uid != record.node_uid:
        nodes.hold(before.node_uid, old, (), at_us=at_us)
        old, kept = (), 0
    if not len(old) == kept == len(record.segments):
        nodes.hold(record.node_uid, old[kept:], record.segments[kept:], at_us=at_us)


def next_revision(record: PodRecord, at_us: int) -> int:
    """A revision higher than any written for this UID before, also by an earlier process."""
    return max(record.revision + 1, at_us)


class Handover:
    """Revised allocations and changed pods, with how much of each history the ledger already has."""

    def __init__(self) -> None:
        self.revised: dict[str, PodRecord] = {}
        """Allocations with a new revision that the ledger does not have, also of deleted pods."""
        self._written: dict[str, PodRecord | None] = {}
        """Changed pods, as they were last handed to the ledger; None for new ones."""
        self.changed: dict[str, None] = {}
        """UIDs of pods that are new, have changed or are gone, until lost work has taken them up; in order."""

    def touch(self, before: PodRecord | None, record: PodRecord) -> None:
        """Mark the pod as changed."""
        self.changed[record.uid] = None
        if before is None:
            self._written[record.uid] = None
        else:
            self._written.setdefault(record.uid, before)

    def touch_all(self, records: Iterable[PodRecord]) -> None:
        """Mark all pods as changed, as if they were new."""
        for record in records:
            self.touch(None, record)

    def drop(self, uid: str) -> None:
        """Mark the pod as dropped."""
        self.changed[uid] = None
        self._written.setdefault(uid, None)

    def drain(
        self, records: Mapping[str, PodRecord]
    ) -> tuple[dict[str, PodRecord], dict[str, PodRecord | None], dict[str, Known]]:
        """Changes since the last call: revisions, pods from `records`, and what the ledger already has of both."""
        revised, written = self.revised, self._written
        self.revised, self._written = {}, {}
        pods = {uid: records.get(uid) for uid in written}
        known = {uid: known_of(before, pods[uid] or revised.get(uid)) for uid, before in written.items()}
        return revised, pods, known
