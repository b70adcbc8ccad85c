"""Feeds, scrapes and restarts a fleet as the runtime does, with times in seconds. Fails if a counter decreases."""

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from gputally.accounting.fleet.active_pods import ANY
from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.fleet.restore import at_present
from gputally.accounting.fleet.snapshot import Snapshot, publish
from gputally.accounting.jobs.record import job_uid
from gputally.accounting.prices.book import PriceBook
from gputally.accounting.totals.series import Labels, Point
from gputally.accounting.totals.total import Lines, Total
from gputally.model.allocation import Segment, State
from gputally.model.disruptions import CountedPreemption
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.pods import Pod
from gputally.model.observation import Deleted, Observation, RelistFinished, RelistStarted, Upserted
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.model.units import COST_UNIT, GPU_SECOND, US_PER_HOUR, US_PER_SECOND
from gputally.shares.schemes import covered
from tests.core.ledger_sums import sums_in
from tests.core.manifests import Json, NodeForm, PodForm, as_class, as_event, as_namespace, as_node, as_pod, us
from tests.core.memory import Memory

if TYPE_CHECKING:
    from gputally.accounting.changes import Changes

Form = PodForm | NodeForm
ZERO = Rules()


class Replay:
    """Accounting starts `opened` seconds after midnight. Namespace `ml` is known from the start.

    A new series is published as 0 for `zero` seconds.
    """

    def __init__(
        self, *, rules: Rules = ZERO, book: PriceBook | None = None, opened: float = 0, zero: float = 0
    ) -> None:
        self.rules = rules
        self.book = book
        self.memory = Memory(accounting_start_us=us(opened))
        self._zero_us = us(zero) - us(0)
        self.fleet = self._new_fleet()
        self.ledger: Lines = {Total.ALLOCATED: (0, 0), Total.COST: (0, 0)}
        self.unwritten: Changes | None = None
        self._published: dict[tuple[Total, Labels], int] = {}
        self.see_namespace({"metadata": {"name": "ml", "uid": "uid-ml"}}, at=opened)

    def see(self, *forms: Form, at: float, since: float | None = None) -> None:
        """An ADDED or MODIFIED event, or an item of a list."""
        for form in forms:
            kind, found = _object(form)
            self.apply(Upserted(kind=kind, object=found, at_us=us(at), since_us=us(at if since is None else since)))

    def see_pod(self, pod: Pod, *, at: float) -> None:
        """A pod that `PodForm` cannot express."""
        self.apply(Upserted(kind=Kind.PODS, object=pod, at_us=us(at), since_us=us(at)))

    def lose(self, *forms: Form, at: float, since: float | None = None) -> None:
        """A DELETED event with the last version."""
        for form in forms:
            kind, found = _object(form)
            self.apply(Deleted(kind=kind, object=found, at_us=us(at), since_us=us(at if since is None else since)))

    def relist(self, kind: Kind, *forms: Form, at: float, since: float | None) -> None:
        """A complete relist; `since` is when the watch was last complete."""
        self.apply(RelistStarted(kind=kind, at_us=us(at)))
        self.see(*forms, at=at, since=since)
        since_us = None if since is None else us(since)
        self.apply(RelistFinished(kind=kind, version="1000", at_us=us(at), since_us=since_us, as_of_us=us(at)))

    def see_event(self, manifest: Json, *, at: float, kind: Kind = Kind.EVENTS) -> None:
        """An Event."""
        self.apply(Upserted(kind=kind, object=as_event(manifest), at_us=us(at), since_us=us(at)))

    def see_namespace(self, manifest: Json, *, at: float) -> None:
        """A namespace."""
        self.apply(Upserted(kind=Kind.NAMESPACES, object=as_namespace(manifest), at_us=us(at), since_us=us(at)))

    def see_class(self, manifest: Json, *, at: float) -> None:
        """A PriorityClass."""
        self.apply(Upserted(kind=Kind.PRIORITY_CLASSES, object=as_class(manifest), at_us=us(at), since_us=us(at)))

    def see_object(self, kind: Kind, found: Object, *, at: float) -> None:
        """An object of any other kind."""
        self.apply(Upserted(kind=kind, object=found, at_us=us(at), since_us=us(at)))

    def lose_object(self, kind: Kind, found: Object, *, at: float) -> None:
        """The deletion of such an object."""
        self.apply(Deleted(kind=kind, object=found, at_us=us(at), since_us=us(at)))

    def relist_objects(self, kind: Kind, *objects: Object, at: float) -> None:
        """A complete list of such objects."""
        self.apply(RelistStarted(kind=kind, at_us=us(at)))
        for each in objects:
            self.see_object(kind, each, at=at)
        self.apply(RelistFinished(kind=kind, version="1000", at_us=us(at), since_us=None, as_of_us=us(at)))

    def apply(self, observation: Observation) -> None:
        """Any observation."""
        self.fleet.apply(observation)

    def drain(self) -> None:
        """Take the pending changes while the ledger cannot be written: they wait for the next `flush`."""
        changes = self.fleet.drain()
        self.unwritten = self.unwritten.followed_by(changes) if self.unwritten else changes

    def flush(self, *, fails: bool = False) -> None:
        """Write the pending changes to the memory. If that `fails` late, they are written again by the next `flush`."""
        self.drain()
        changes = self.unwritten
        assert changes
        self.unwritten = changes if fails else None
        for record in changes.revisions.values():
            self._balance(self.memory.revisions[record.uid].segments if record.uid in self.memory.revisions else (), -1)
            self._balance(record.segments, 1)
        assert self.in_jobs() == self.in_pods(), "ended jobs and open ones differ from the allocated time"
        self.memory.write(changes)
        assert changes.live == self.ledger | sums_in(self.memory), "the counters differ from the rows of the ledger"
        assert self.in_waits() == self.in_counters(Total.PENDING), (
            "the counters of waits differ from the waits in the ledger"
        )
        assert self.in_uncreated_waits() == self.in_counters(Total.UNCREATED), (
            "the counters of pods that do not exist differ from their waits in the ledger"
        )

    def scrape(self, at: float) -> Snapshot:
        """Publish and flush, then check that no counter decreased, and that pending pods add up."""
        self.fleet.advance(us(at))
        self.fleet.waiting.judge(at_us=self.fleet.now_us)
        snapshot = publish(self.fleet, now_us=us(at), ledger={})
        self.flush()
        for total, rows in snapshot.totals.items():
            for row in rows:
                self._check(total, row, snapshot.now_us)
        self._check_pending(snapshot)
        assert snapshot.cost_differences == {"capacity": 0}
        self._check_starting(snapshot)
        assert self._by_payer(Total.PURCHASED) == self.in_pods(), "purchase options do not add up"
        return snapshot

    def _check_starting(self, snapshot: Snapshot) -> None:
        """By the segments that the ledger gets."""
        first_us: dict[tuple[str, str], int] = {}
        for record in self.fleet.pods.records.values():
            last = record.segments[-1] if record.segments else None
            if last and last.end_us is None and last.state is State.STARTING:
                labels, start_us = last.labels[:2], record.segments[0].start_us
                first_us[labels] = min(first_us.get(labels, start_us), start_us)
        assert snapshot.starting == first_us

    def _check_pending(self, snapshot: Snapshot) -> None:
        records = [each for each in self.fleet.pods.records.values() if each.end_by is None and not each.scheduled_us]
        quantities, models = Counter[str](), self.fleet.nodes.models()
        for record in records:
            quantities[models.get(record.selected_model, record.selected_model)] += covered(
                record.units, (), self.rules
            )
        oldest_us = min((each.oldest_us for each in snapshot.waiting.values()), default=None)
        assert sum(each.pods for each in snapshot.waiting.values()) == len(records)
        assert oldest_us == min((record.created_us for record in records), default=None)
        assert snapshot.wanted.get(ANY, 0) == quantities[""]
        assert sum(snapshot.wanted.values()) == sum(each.quantity for each in snapshot.waiting.values())
        assert sum(snapshot.wanted.values()) == quantities.total()

    def in_waits(self) -> Counter[Labels]:
        """Pending GPU-time an hour from now, by the labels of its counter, as the ledger has it."""
        found, at_us = Counter[Labels](), self.fleet.now_us + US_PER_HOUR
        for row in self.memory.waits.values():
            wait = row.wait
            for labels, quantity in wait.charges:
                found[labels] += quantity * ((at_us if wait.to_us is None else wait.to_us) - wait.from_us)
        return +found

    def in_uncreated_waits(self) -> Counter[Labels]:
        """The same of pods that do not exist."""
        found, at_us = Counter[Labels](), self.fleet.now_us + US_PER_HOUR
        for wait in self.memory.uncreated_waits.values():
            found[wait.labels] += wait.whole * ((at_us if wait.to_us is None else wait.to_us) - wait.from_us)
        return +found

    def in_counters(self, total: Total) -> Counter[Labels]:
        """The same as the counters have it."""
        found, at_us = Counter[Labels](), self.fleet.now_us + US_PER_HOUR
        found.update({labels: series.at(at_us) for labels, series in self.fleet.totals.truth(total)})
        return +found

    def in_pods(self) -> Counter[tuple[str, str]]:
        """What is allocated an hour from now, by tier and tenant."""
        return self._by_payer(Total.ALLOCATED)

    def in_jobs(self) -> Counter[tuple[str, str]]:
        """The same as the sum of ended jobs and open ones, of which a pod without a Job is one."""
        found, at_us = self._by_payer(Total.JOB), self.fleet.now_us + US_PER_HOUR
        for time in self.fleet.jobs.open_time():
            found.update({payer: a + b * at_us for payer, (a, b) in time.lines.items()})
        for record in self.fleet.pods.records.values():
            if job_uid(record.owner) is None and record.counted is None:
                found.update(self._of_pod(record, at_us))
        return +found

    def _by_payer(self, total: Total) -> Counter[tuple[str, str]]:
        found, at_us = Counter[tuple[str, str]](), self.fleet.now_us + US_PER_HOUR
        for labels, series in self.fleet.totals.truth(total):
            found[labels[0], labels[1]] += series.at(at_us)
        return +found

    def _of_pod(self, record: PodRecord, at_us: int) -> Counter[tuple[str, str]]:
        found = Counter[tuple[str, str]]()
        for each in record.segments:
            start_us = max(each.start_us, self.memory.accounting_start_us)
            end_us = at_us if each.end_us is None else max(start_us, each.end_us)
            found[each.labels[0], each.labels[1]] += each.quantity * (end_us - start_us)
        return found

    def _check(self, total: Total, row: Point, now_us: int) -> None:
        """A series continues at its last value, never falls, and then reports its overcount."""
        key = total, row.labels
        series = self.fleet.totals.series[key]
        before = self._published.get(key, 0)
        assert row.value >= before, f"{total} {row.labels} fell from {before} to {row.value}"
        if series.shown_us is not None and now_us >= series.shown_us:
            assert row.value == series.at(now_us) + row.ahead
        else:
            assert row.value == before, f"{total} {row.labels} changed from {before} to {row.value} before it was shown"
        self._published[key] = row.value

    def _new_fleet(self, at: float | None = None) -> Fleet:
        saved = self.memory.saved() if at is None else at_present(self.memory.saved(), now_us=us(at))
        return Fleet(rules=self.rules, book=self.book, saved=saved, zero_us=self._zero_us)

    def restart(self, *, rules: Rules | None = None, book: PriceBook | None = None, at: float | None = None) -> None:
        """Start a new process, by default at the saved time; unflushed changes are lost. It lists namespaces first."""
        self.rules, self.book, self.unwritten = rules or self.rules, book or self.book, None
        self.fleet = self._new_fleet(at)
        since = (self.fleet.now_us - us(0)) / US_PER_SECOND
        self.see_namespace({"metadata": {"name": "ml", "uid": "uid-ml"}}, at=since)

    def true(self, total: Total, at: float) -> dict[Labels, int]:
        """The exact values of a family by labels, without zeros."""
        self.fleet.nodes.catch_up(at_us=self.fleet.now_us)
        values = {labels: series.at(us(at)) for labels, series in self.fleet.totals.truth(total)}
        return {labels: value for labels, value in values.items() if value}

    def gpu_seconds(self, at: float, total: Total = Total.ALLOCATED) -> dict[Labels, Fraction]:
        """The exact values of a GPU-time family in GPU-seconds, without zeros."""
        return {labels: Fraction(value, GPU_SECOND) for labels, value in self.true(total, at).items()}

    def by_state(self, at: float, total: Total = Total.ALLOCATED) -> dict[str, Fraction]:
        """GPU-seconds by state, summed over the other labels."""
        position = 3 if total is Total.ALLOCATED else 2
        return _summed((labels[position], value) for labels, value in self.gpu_seconds(at, total).items())

    def capacity(self, at: float) -> dict[str, Fraction]:
        """GPU-seconds of capacity by state."""
        return self.by_state(at, Total.CAPACITY)

    def money(self, at: float, total: Total = Total.COST) -> dict[Labels, Fraction]:
        """Cost by labels, in units of the currency."""
        return {labels: Fraction(value, COST_UNIT) for labels, value in self.true(total, at).items()}

    def preemption(self, victim_uid: str) -> CountedPreemption:
        """For whom a victim was preempted."""
        by = self.fleet.disrupted.victims.known[victim_uid].by
        assert by
        return by

    def segments(self, name: str = "a") -> Sequence[Segment]:
        """The allocation of a pod as last written to the ledger."""
        self.flush()
        return self.memory.revisions[f"uid-{name}"].segments if f"uid-{name}" in self.memory.revisions else ()

    def spans(self, name: str = "a") -> list[tuple[str, float, float | None]]:
        """The segments as (state, start, end) in seconds."""
        return [
            (s.state.value, _seconds(s.start_us), None if s.end_us is None else _seconds(s.end_us))
            for s in self.segments(name)
        ]

    def _balance(self, segments: Iterable[Segment], sign: int) -> None:
        """Add the segments to the ledger's sums, computed from segments alone."""
        (a, b), (cost_a, cost_b) = self.ledger[Total.ALLOCATED], self.ledger[Total.COST]
        for s in segments:
            start_us = max(s.start_us, self.memory.accounting_start_us)
            more = -start_us if s.end_us is None else max(0, s.end_us - start_us)
            more, slope = sign * s.quantity * more, sign * s.quantity * (s.end_us is None)
            rate = s.price.rate if s.price else 0
            a, b, cost_a, cost_b = a + more, b + slope, cost_a + more * rate, cost_b + slope * rate
        self.ledger = {Total.ALLOCATED: (a, b), Total.COST: (cost_a, cost_b)}


def _object(form: Form) -> tuple[Kind, Object]:
    return (Kind.PODS, as_pod(form)) if isinstance(form, PodForm) else (Kind.NODES, as_node(form))


def _seconds(instant_us: int) -> float:
    return (instant_us - us(0)) / US_PER_SECOND


def _summed(pairs: Iterable[tuple[str, Fraction]]) -> dict[str, Fraction]:
    sums: dict[str, Fraction] = {}
    for key, value in pairs:
        sums[key] = sums.get(key, Fraction(0)) + value
    return {key: value for key, value in sums.items() if value}
