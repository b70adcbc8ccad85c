"""Allocations as rows: each revision stores its changes to the previous one; texts and prices are stored by number."""

import json
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, starmap
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from gputally.accounting.changes import UNKNOWN, Changes
from gputally.accounting.facts.outcome import outcome_of
from gputally.accounting.jobs.progress import PodProgress, ProgressKey
from gputally.accounting.jobs.record import JobRecord, job_uid
from gputally.accounting.totals.total import Lines, Total
from gputally.ledger.price_columns import price_columns, price_of
from gputally.ledger.sqlite.dictionary import Dictionary, segment_of
from gputally.ledger.sqlite.ended_pods import rolled_up
from gputally.ledger.sqlite.pod_days import add_days
from gputally.ledger.sqlite.rows import Row
from gputally.ledger.sqlite.summed_pages import FinishedPages
from gputally.ledger.tables.allocations import (
    JOB_OUTCOMES,
    JOB_PROGRESS,
    POD_REVISIONS,
    POD_SEGMENTS,
    PODS,
    PRICES,
    TERMS,
    TEXTS,
)
from gputally.ledger.tables.statements import insert, upsert
from gputally.model.allocation import Segment
from gputally.model.pod_record import PodRecord
from gputally.model.price import Price

if TYPE_CHECKING:
    from gputally.ledger.protocol import Line

logger = logging.getLogger(__name__)

_SHOWN: Final = 5
_AT_ONCE: Final = 2000
"""Revisions that are prepared together: those of all pods, at the first write, would take megabytes."""
_LAST: Final = """
SELECT p.uid, p.id, r.number, r.revision, r.segments
FROM json_each(?) AS wanted
CROSS JOIN pods p ON p.uid = wanted.value
CROSS JOIN pod_revisions r ON r.pod = p.id AND r.number = (SELECT max(number) FROM pod_revisions WHERE pod = p.id)
"""
"""The last revision of each UID of a JSON array. One statement for each UID would take longer than writing them."""
_REPLACED: Final = """
SELECT s.start_us, s.end_us, s.quantity, s.price
FROM json_each(?) AS wanted
CROSS JOIN pod_segments s
  ON s.pod = json_extract(wanted.value, '$[0]')
 AND s.ordinal >= json_extract(wanted.value, '$[1]') AND s.ordinal < json_extract(wanted.value, '$[2]')
 AND s.number = (SELECT max(number) FROM pod_segments WHERE pod = s.pod AND ordinal = s.ordinal)
"""
"""The current segments of [pod, from ordinal, up to ordinal]."""
_NEW_POD: Final = f"{insert(PODS)} RETURNING {PODS.number}"
_INSERT_REVISION: Final = insert(POD_REVISIONS)
_INSERT_SEGMENT: Final = insert(POD_SEGMENTS)
_UPSERT_JOB: Final = upsert(JOB_OUTCOMES)
_UPSERT_PROGRESS: Final = f"{upsert(JOB_PROGRESS)} WHERE excluded.micro > job_progress.micro"
_WORKING: Final = """
SELECT p.uid, s.start_us, s.end_us, s.quantity, s.terms, s.price
FROM working w
CROSS JOIN pods p ON p.uid = w.uid
CROSS JOIN pod_revisions r ON r.pod = p.id AND r.number = (SELECT max(number) FROM pod_revisions WHERE pod = p.id)
CROSS JOIN pod_segments s
  ON s.pod = p.id AND s.ordinal < r.segments
 AND s.number = (SELECT max(number) FROM pod_segments WHERE pod = s.pod AND ordinal = s.ordinal)
WHERE w.kind = ?
"""
PricedSpan = tuple[int, int | None, int, Price | None]
"""Start and end (µs; None while it lasts), µGPU, and the price."""


class _Plan(NamedTuple):
    """A revision to add, the `number`th of its pod. Of its `previous` segments, the first `unchanged` ones stay."""

    record: PodRecord
    pod: int
    number: int
    unchanged: int
    previous: int

    @property
    def added(self) -> Sequence[Segment]:
        """The segments to add."""
        return self.record.segments[self.unchanged :]


class AllocationTables:
    """The tables of allocations, through one connection; the caller manages transactions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._texts = Dictionary(connection, TEXTS)
        self._terms = Dictionary(connection, TERMS)
        self._prices = Dictionary(connection, PRICES)
        self._dictionaries = (self._texts, self._terms, self._prices)
        self.finished = FinishedPages(connection)
        self.ignored = 0
        """Revisions of allocations that are rolled up."""

    def append(self, changes: Changes) -> Lines:
        """Add the missing revisions, and return the increase of the sums of all current segments, from the rows."""
        self._connection.executemany(_UPSERT_JOB, map(self._job, changes.jobs.values()))
        self._connection.executemany(_UPSERT_PROGRESS, starmap(self._progress, changes.progress.items()))
        revisions, sums = iter(changes.revisions.items()), PricedLine(changes.accounting_start_us)
        while part := dict(islice(revisions, _AT_ONCE)):
            self._append(part, changes, sums)
        return {Total.ALLOCATED: sums.time, Total.COST: sums.cost}

    def _append(self, revisions: Mapping[str, PodRecord], changes: Changes, sums: "PricedLine") -> None:
        known = self._known(revisions)
        late = self._rolled_up(revisions.keys() - known.keys())
        plans = []
        for uid, record in revisions.items():
            if uid in late:
                continue
            pod, number, revision, previous = known.get(uid, (0, 0, 0, 0))
            if record.revision > revision:
                unchanged = min(changes.known.get(uid, UNKNOWN).segments, previous)
                plans.append(_Plan(record, pod or self._new_pod(record), number + 1, unchanged, previous))
        plans.sort(key=lambda plan: plan.pod)  # in table order, each page is visited once
        self.finished.withdraw(plan.pod for plan in plans)
        replaced = list(self._replaced(plans))
        many = self._connection.executemany
        many(_INSERT_REVISION, (self._revision(plan, changes.at_us) for plan in plans))
        many(_INSERT_SEGMENT, (row for plan in plans for row in self._segments(plan)))
        add_days(self._connection, ((plan.pod, plan.number > 1, plan.record.segments) for plan in plans))
        sums.add((s.start_us, s.end_us, s.quantity, s.price) for plan in plans for s in plan.added)
        sums.add(replaced, sign=-1)

    def of_working(self, kind: str) -> dict[str, list[Segment]]:
        """The segments of the pods in the working state, by UID."""
        found = defaultdict[str, list[Segment]](list)
        by_terms: dict[tuple[int, int | None], Segment] = {}
        for uid, start_us, end_us, quantity, terms, price in self._connection.execute(_WORKING, (kind,)):
            segment = by_terms.get((terms, price))
            if segment is None:
                segment = by_terms[terms, price] = segment_of((0, 0, 0), self._terms.row(terms), self._price(price))
            found[uid].append(replace(segment, start_us=start_us, end_us=end_us, quantity=quantity))
        return found

    def store_prices(self, prices: Iterable[Price]) -> None:
        """Add the missing prices, which rows may then name by key."""
        for price in prices:
            self._prices.number((price.key,), price_columns(price))

    def trim(self) -> None:
        """The transaction is committed."""
        for dictionary in self._dictionaries:
            dictionary.trim()

    def forget(self) -> None:
        """The transaction was rolled back."""
        for dictionary in self._dictionaries:
            dictionary.forget()
        self.finished.forget()

    def _known(self, uids: Iterable[str]) -> dict[str, tuple[int, int, int, int]]:
        """Pod, number, revision and how many segments of the last revision that is there, by UID."""
        found = self._connection.execute(_LAST, (json.dumps(tuple(uids)),))
        return {uid: (pod, number, revision, previous) for uid, pod, number, revision, previous in found}

    def _rolled_up(self, uids: Collection[str]) -> set[str]:
        """Pods that are rolled up: nothing may add their time again, or correct it."""
        late = rolled_up(self._connection, uids) if uids else set()
        if late:
            self.ignored += len(late)
            logger.warning(
                "%d late changes of allocations that --ledger.retention rolled up are ignored, of the pods %s",
                *(len(late), ", ".join(sorted(late)[:_SHOWN])),
            )
        return late

    def _replaced(self, plans: Iterable[_Plan]) -> Iterator[PricedSpan]:
        wanted = [(plan.pod, plan.unchanged, plan.previous) for plan in plans if plan.unchanged < plan.previous]
        rows = self._connection.execute(_REPLACED, (json.dumps(wanted),))
        return ((start_us, end_us, quantity, self._price(price)) for start_us, end_us, quantity, price in rows)

    def _price(self, number: int | None) -> Price | None:
        return None if number is None else price_of(*self._prices.row(number))

    def _text(self, text: str) -> int:
        return self._texts.number((text,))

    def _new_pod(self, record: PodRecord) -> int:
        uid = job_uid(record.owner)
        row = PODS.new(
            uid=record.uid,
            namespace_text=self._text(record.namespace),
            name=record.name,
            class_name_text=self._text(record.class_name),
            priority=record.priority,
            created_us=record.created_us,
            job_uid_text=self._text(uid) if uid else None,
        )
        number: int = self._connection.execute(_NEW_POD, row).fetchone()[0]
        return number

    def _revision(self, plan: _Plan, at_us: int) -> Row:
        record, text, gap, result = plan.record, self._texts.number, plan.record.gap, plan.record.result
        return POD_REVISIONS.new(
            plan.pod,
            plan.number,
            record.revision,
            None if at_us == record.revision else at_us,
            text((record.node,)),
            text((record.node_uid,)),
            text((record.job_kind,)),
            text((record.job,)),
            record.scheduled_us,
            record.started_us,
            record.deletion_us,
            record.end_us,
            text((record.end_by.value,)) if record.end_by else None,
            gap.from_us if gap else None,
            gap.to_us if gap else None,
            len(record.segments),
            text((outcome_of(record).value,)),
            text((result.phase,)) if result else None,
            text((result.reason,)) if result else None,
            result.exit_code if result else None,
            plan.unchanged,
        )

    def _job(self, job: JobRecord) -> Row:
        return JOB_OUTCOMES.new(
            job_uid_text=self._text(job.uid),
            namespace_text=self._text(job.namespace),
            name=job.name,
            created_us=job.created_us,
            outcome_text=self._text(job.outcome.value),
            reason_text=self._text(job.reason),
            ended_us=job.ended_us,
        )

    def _progress(self, key: ProgressKey, found: PodProgress) -> Row:
        namespace, kind, job = map(self._text, key[:3])
        return JOB_PROGRESS.new(namespace, kind, job, found.micro, found.unit, found.at_us)

    def _segments(self, plan: _Plan) -> Iterator[Row]:
        for ordinal, s in enumerate(plan.added, plan.unchanged):
            terms = (s.resource, s.state, s.tier, s.tenant, s.queue, s.gpu_model, s.pool, *s.labels[:3])
            price = self._prices.number((s.price.key,), price_columns(s.price)) if s.price else None
            number = self._terms.number(terms)
            yield POD_SEGMENTS.new(plan.pod, ordinal, plan.number, s.start_us, s.end_us, s.quantity, number, price)


class PricedLine:
    """A sum of GPU-time since the start of accounting, and of its cost, as lines (a, b)."""

    def __init__(self, accounting_start_us: int) -> None:
        self.time: Line = (0, 0)
        self.cost: Line = (0, 0)
        self._start_us = accounting_start_us

    def add(self, spans: Iterable[PricedSpan], *, sign: int = 1) -> None:
        """Add these spans, or take them back."""
        a = b = cost_a = cost_b = 0
        for start_us, end_us, quantity, price in spans:
            from_us = max(start_us, self._start_us)
            if end_us is None:
                more, slope = -quantity * from_us, quantity
            else:
                more, slope = quantity * max(0, end_us - from_us), 0
            a, b = a + more, b + slope
            if price:
                cost_a, cost_b = cost_a + price.cost(more), cost_b + price.cost(slope)
        self.time = self.time[0] + sign * a, self.time[1] + sign * b
        self.cost = self.cost[0] + sign * cost_a, self.cost[1] + sign * cost_b
