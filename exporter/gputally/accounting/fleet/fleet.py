"""The state of the fleet: one writer applies observations in order of arrival; readers get snapshots.

Observations of different kinds come in no common order: every rule recomputes its result, and corrects the totals.
"""

from collections.abc import Collection, Iterator, Mapping
from operator import attrgetter
from typing import Any

from msgspec import Struct

from gputally.accounting.base.coverage import Coverage
from gputally.accounting.base.limits import LimitOverflow
from gputally.accounting.base.state_part import DOCUMENTS, StatePart
from gputally.accounting.changes import Changes, Saved
from gputally.accounting.disruptions.counters import STEP_BOUNDS_S, STEPS
from gputally.accounting.disruptions.disrupted_pods import DisruptedPods
from gputally.accounting.disruptions.disruptions import ClusterState
from gputally.accounting.disruptions.preemptions import UNKNOWN
from gputally.accounting.facts.allocation import POD_READING
from gputally.accounting.facts.node_history import Reclassified
from gputally.accounting.fleet.readers import Readers
from gputally.accounting.fleet.restore import restore
from gputally.accounting.jobs.jobs import Jobs
from gputally.accounting.jobs.progress import JobProgress
from gputally.accounting.nodes.facts import NODE_READING
from gputally.accounting.nodes.inventory import OTHER, UnknownOffers
from gputally.accounting.nodes.nodes import Nodes
from gputally.accounting.pods.pods import NamespaceTenants, Pods
from gputally.accounting.pods.posting import BEYOND, SCHEDULING_BOUNDS_S, Posting
from gputally.accounting.policy.policy import Policy
from gputally.accounting.prices.book import PriceBook
from gputally.accounting.prices.pricing import Pricing
from gputally.accounting.terms.job import OwnerWalks
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.accounting.totals.series import Labels, Series
from gputally.accounting.totals.total import RECONCILED, Total
from gputally.accounting.totals.totals import Totals
from gputally.accounting.uncreated.uncreated import Uncreated
from gputally.accounting.usage.usage import Usage
from gputally.accounting.wait_book.book import WaitBook
from gputally.accounting.wait_book.prices import CandidateNodePrices
from gputally.accounting.wait_book.terms import ChargeTerms
from gputally.accounting.waiting.live_room import LiveRoom
from gputally.accounting.waiting.waiting import WaitingPods
from gputally.accounting.watched.agents import Agents
from gputally.accounting.watched.unaccounted_pods import UNACCOUNTED_READING, UnaccountedDays
from gputally.model.disruptions import Victim
from gputally.model.kube.kinds import NO_LIMIT, OPTIONAL_RESOURCES, Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.nodes import Node
from gputally.model.kube.pods import Pod
from gputally.model.node_record import LabelConflict
from gputally.model.observation import (
    Bookmark,
    Checkpoint,
    Deleted,
    ListedSeparately,
    Observation,
    OtherPod,
    OwnerResolved,
    RelistFinished,
    RelistStarted,
    Upserted,
    UsageReported,
    WorkloadResolved,
)
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.model.unaccounted import Unaccounted
from gputally.model.units import US_PER_SECOND
from gputally.model.usage import AgentPod, Fault
from gputally.model.verdicts import Verdict
from gputally.placement.room import Room

_ROUND_US = 5 * US_PER_SECOND
"""How often deadlines are checked."""
_WATCHED = (Upserted, Deleted, Bookmark)
"""Observations of a watch."""
_UNRELATED_TO_PODS = (OtherPod, UsageReported, WorkloadResolved)
"""Observations that change nothing about how pods with GPUs are accounted."""


class KnownSeries:
    """Declares the series that follow from the tiers, once per tier."""

    def __init__(self, totals: Totals, limiter: LabelLimiter) -> None:
        self._totals = totals
        self._tiers = limiter.values["tier"]
        self._declared: set[str] = set()

    def declare(self, *, at_us: int) -> None:
        """Declare the time-to-schedule histogram and the preemption matrix for all known tiers."""
        self._totals.declare(Total.UNMATCHED, (), at_us=at_us)
        self._declare_steps(at_us)
        for tier in sorted(self._tiers.keys() - self._declared):
            self._declared.add(tier)
            self._totals.declare(Total.SCHEDULING_TIME, (tier,), at_us=at_us)
            for bound in (*SCHEDULING_BOUNDS_S, BEYOND):
                self._totals.declare(Total.SCHEDULED, (tier, str(bound)), at_us=at_us)
            for victim, preemptor in self._pairs(tier):
                self._totals.declare(Total.PREEMPTIONS, (victim, preemptor), at_us=at_us)
                self._totals.declare(Total.PREEMPTED, (victim, preemptor), at_us=at_us)
                if preemptor != UNKNOWN:
                    self._totals.declare(Total.FORBIDDEN, (victim, preemptor), at_us=at_us)

    def _declare_steps(self, at_us: int) -> None:
        for step in STEPS:
            self._totals.declare(Total.PREEMPTION_STEP_TIME, (step,), at_us=at_us)
            for bound in (*STEP_BOUNDS_S, BEYOND):
                self._totals.declare(Total.PREEMPTION_STEPS, (step, str(bound)), at_us=at_us)

    def _pairs(self, tier: str) -> set[tuple[str, str]]:
        """The additional matrix entries of a new tier; an unknown pod may preempt, but is never a victim."""
        known = {(tier, other) for other in self._declared} | {(other, tier) for other in self._declared}
        return known | {(tier, UNKNOWN)}


def documents() -> Mapping[str, type[Struct]]:
    """The types of the documents that ledgers keep of each part, for the next process alone, by its name."""
    return DOCUMENTS


class Fleet:
    """Pods, nodes and other parts, their totals, and the changes not yet in the ledger."""

    def __init__(
        self, *, rules: Rules, book: PriceBook | None, saved: Saved, zero_us: int = 0, explains_waits: bool = True
    ) -> None:
        self.rules = rules
        self.limiter = LabelLimiter(rules.limits, saved.known_values, now_us=saved.at_us)
        self.totals = Totals(
            accounting_start_us=saved.accounting_start_us,
            evaluated_us=saved.evaluated_us,
            resumed_us=saved.resumed_us,
            zero_us=zero_us,
            series=saved.series,
            limiter=self.limiter,
        )
        self.known_series, self.pricing = KnownSeries(self.totals, self.limiter), Pricing(book, now_us=saved.at_us)
        self.nodes = Nodes(rules, self.pricing, self.totals, self.limiter)
        self.jobs = Jobs(self.totals, is_watched=Kind.JOBS in saved.resumes)
        prices = CandidateNodePrices(Room(), rules, self.pricing)
        waits = WaitBook(self.totals, ChargeTerms(rules, self.limiter, prices, self.nodes.most), is_on=explains_waits)
        self.pods = Pods(rules, self.pricing, Posting(self.totals, self.jobs, waits), self.limiter, self.nodes)
        self.usage = Usage(self.totals, self.limiter, self.pods, self.nodes)
        resumed = bool(saved.resumes)
        self.waiting = WaitingPods(self.pods, self.nodes, waits, rules, self.usage.is_idle, is_resumed=resumed)
        self.coverage = Coverage(saved.resumes, accounting_start_us=saved.accounting_start_us)
        self.policy = Policy(rules, self.pods.namespaces, self.limiter, self.coverage)
        cluster = ClusterState(self.nodes, self.jobs, self.coverage, self.policy)
        self.disrupted = DisruptedPods(self.totals, self.pods, self.limiter, cluster, rules=rules)
        self.agents, self.progress = Agents(rules), JobProgress(self.pods.records)
        self.unaccounted, self.unknown_offers = self.pods.index.unaccounted, UnknownOffers(rules)
        self.uncreated = Uncreated(rules, self.policy, self.pods.namespaces, waits, self.coverage, totals=self.totals)
        own = (self.nodes.most, self.agents, self.jobs, self.jobs.costs, self.progress)
        unbilled = (self.unaccounted, UnaccountedDays(self.unaccounted), self.unknown_offers)
        late = (*self.pods.gangs.parts, *self.waiting.parts, *self.uncreated.parts, NamespaceTenants(self.pods))
        self.parts: tuple[StatePart[Any], ...] = (*own, *unbilled, *self.policy.parts, *self.disrupted.parts, *late)
        self._pods_digest = f"{rules.digest} {UNACCOUNTED_READING}"
        self.now_us, self._next_round_us = saved.at_us, 0
        self._readers = Readers(self.parts, rules)
        self.limiter.record_growth(self.totals.growth)
        restore(self, saved)

    @property
    def book(self) -> PriceBook | None:
        """The active price book, None without one."""
        return self.pricing.book

    @property
    def is_listing(self) -> bool:
        """Whether a watch is listing its objects."""
        return self.coverage.is_listing

    @property
    def evaluated_us(self) -> int:
        """Up to when counters were published last (µs)."""
        return self.totals.evaluated_us

    @property
    def is_behind(self) -> bool:
        """Whether some verdicts on waiting pods are still to be renewed."""
        return self.waiting.is_behind

    @property
    def explains_waits(self) -> bool:
        """Whether the reasons of waits are determined."""
        return self.waiting.is_on

    @property
    def live_room(self) -> LiveRoom:
        """What nodes offer and pods take, as far as `explains_waits`."""
        return self.waiting.live

    def matters(self, node: str) -> bool:
        """Whether pods without GPUs on a node of that name matter for waits."""
        return self.waiting.live.matters(node)

    @property
    def records(self) -> Collection[PodRecord]:
        """All pods with GPUs."""
        return self.pods.records.values()

    @property
    def owner_walks(self) -> OwnerWalks:
        """The owners that are to be looked up."""
        return self.pods.walks

    @property
    def faulty_agents(self) -> Mapping[str, Fault]:
        """The agents with implausible usage, by node, and the last fault of each."""
        return self.usage.pending.faulty

    @property
    def preempted(self) -> Mapping[str, Victim]:
        """Pods that were preempted in the last hour, and existing ones that were preempted, by UID."""
        return self.disrupted.preemptions.known

    def agents_on_nodes(self) -> Mapping[str, AgentPod]:
        """See `Agents.on_nodes`."""
        return self.agents.on_nodes()

    def count_job_costs(self, *, is_on: bool) -> None:
        """Whether the cost of each job is added up from now on."""
        self.jobs.costs.is_on = is_on

    def announce_preemptions(self) -> None:
        """Mark new preemptions of jobs from now on as those that a webhook is to get."""
        self.disrupted.disruptions.announces = True

    def judge(self) -> None:
        """Renew the verdicts on waiting pods, as many as take little time: see `is_behind`."""
        self.waiting.judge(at_us=self.now_us)

    def withdraw_published(self) -> None:
        """See `Totals.withdraw`."""
        self.totals.withdraw()

    def truth(self, total: Total) -> Iterator[tuple[Labels, Series]]:
        """See `Totals.truth`."""
        return self.totals.truth(total)

    def tenant_of(self, record: PodRecord) -> str:
        """The tenant of a pod, by the present labels of its namespace."""
        return self.pods.namespaces.tenant(record)

    def pending_records(self) -> list[PodRecord]:
        """The pods that are not bound."""
        return [self.pods.records[uid] for uid in self.pods.index.pending]

    def verdict_of(self, uid: str) -> Verdict | None:
        """Why a pod waits; None if that is not known."""
        found = self.waiting.pod(uid)
        return found.verdict if found else None

    def take_label_conflicts(self) -> list[tuple[str, str, LabelConflict]]:
        """New contradictions between the GPU labels of a node and its units, by UID and name, since the last call."""
        found = self.nodes.take_new_conflicts().items()
        return [(uid, self.nodes.accounts[uid].record.name, conflict) for uid, conflict in found]

    def unaccounted_examples(self) -> Iterator[tuple[Unaccounted, str]]:
        """Each reason for which GPUs of pods are not accounted, with the name of a pod."""
        for reason, pods in self.unaccounted.read().pods.items():
            if pods:
                yield reason, self.unaccounted.example(reason, self.pods.records)

    def unknown_devices(self) -> set[str]:
        """Resources that nodes offer, that look like GPUs, and that no rule weighs."""
        return self.unknown_offers.read().keys() - {OTHER}

    def apply(self, observation: Observation) -> None:
        """Observe and account one observation. Raises: MalformedObject, see `observe`."""
        self.observe(observation)
        self.reconcile()

    def limit_overflow(self) -> dict[Kind, LimitOverflow]:
        """How often objects of each watched kind with a limit were not kept, by the part that kept the fewest."""
        unwatched = {*OPTIONAL_RESOURCES} - {*self.rules.watched}
        kinds = [kind for kind in Kind if kind.limit != NO_LIMIT and kind not in unwatched]
        found = {kind: [part.limit_overflow for part in self._readers.of_kind[kind]] for kind in kinds}
        return {kind: max(each, key=attrgetter("count"), default=LimitOverflow()) for kind, each in found.items()}

    def reconcile(self) -> None:
        """Account pending pod updates; runs before any other kind of observation and before each read."""
        for record, at_us in self.pods.reconcile():
            self.disrupted.pod_changed(record, at_us=at_us)
            self.waiting.pod_changed(record, at_us=at_us)
            self.uncreated.pod_changed(record, at_us=at_us)

    def observe(self, observation: Observation) -> None:
        """Apply one observation; pod updates may stay pending until `reconcile` accounts them.

        Raises: MalformedObject, without any change, for an inconsistent object.
        """
        is_pod_event = isinstance(observation, _WATCHED) and observation.kind is Kind.PODS
        if not (is_pod_event or isinstance(observation, _UNRELATED_TO_PODS)):
            self.reconcile()  # the observation may change how later pod updates are accounted
        self.advance(observation.at_us)
        match observation:
            case Upserted(kind=kind, object=found):
                self._upserted(observation, found)
                self._save_checkpoint(kind, found.metadata.resource_version, observation.since_us)
            case Deleted(kind=kind, object=found):
                self._deleted(observation, found)
                self._save_checkpoint(kind, found.metadata.resource_version, observation.since_us)
            case RelistStarted(kind=kind):
                self.coverage.begin(kind)
                self.waiting.listing(kind)
            case RelistFinished():
                self._relist_finished(observation)
            case Bookmark(kind=kind, version=version):
                self._save_checkpoint(kind, version, observation.since_us)
            case _:
                self._apply_response(observation)

    def advance(self, now_us: int) -> None:
        """Advance the time: apply price changes and expired deadlines."""
        if now_us <= self.now_us < self._next_round_us:
            return
        if now_us >= self._next_round_us:
            self.reconcile()
        self.now_us = self.pricing.now_us = max(self.now_us, now_us)
        if self._is_due(self.pods.unaccepted.next_us):
            self.pods.advance(self.now_us)
        if self._is_due(self.pricing.next_us):
            changed_us = self.pricing.advance()
            self.nodes.invalidate_all(since_us=changed_us)
            self.pods.reprice(at_us=self.now_us, since_us=changed_us)
        if self.now_us < self._next_round_us:
            return
        self._next_round_us = self.now_us + _ROUND_US
        if self.limiter.advance(self.now_us, self.totals.growth):
            self.pods.account_others(at_us=self.now_us)
        for part in self.parts:
            part.advance(self.now_us)
        self.pods.forget_departed(self.now_us)
        self.usage.advance(self.now_us)
        self.jobs.forget_departed(self.usage.keeps)
        self.jobs.costs.forget(self.now_us, self.pods.records)
        self.nodes.forget_gone(self.now_us, self.pods.nodes_in_use)

    def catch_up(self) -> None:
        """Account what follows from all observations: capacity of nodes, lost work of amended pods, and waits."""
        self.nodes.catch_up(at_us=self.now_us)
        self.waiting.book.post()
        self.uncreated.post(at_us=self.now_us)
        self.disrupted.lost_work.revised(self.pods.handover.revised)

    def _is_due(self, deadline_us: int | None) -> bool:
        return deadline_us is not None and deadline_us <= self.now_us

    def resume_of(self, kind: Kind) -> Checkpoint | None:
        """The checkpoint from which the watch resumes; None if it must relist, as other rules kept other objects."""
        resume = self.coverage.resumes.get(kind)
        return resume if resume and resume.rules == self._digest(kind) else None

    def drain(self) -> Changes:
        """Changes since the last call, as one consistent step for the ledger."""
        self.reconcile()
        self.catch_up()
        revisions, pods, known = self.pods.handover.drain(self.pods.records)
        nodes, capacity = self.nodes.drain()
        resumes, interruptions = self.coverage.drain()
        held, unallocated = self.usage.pending.drain()
        return Changes(
            accounting_start_us=self.totals.accounting_start_us,
            evaluated_us=self.totals.evaluated_us,
            at_us=self.now_us,
            revisions=revisions,
            known=known,
            pods=pods,
            nodes=nodes,
            capacity=capacity,
            asset_prices=self.nodes.asset_prices.drain(),
            documents={(part.name, key): each for part in self.parts for key, each in part.drain().items()},
            victims=self.disrupted.drain_victims(),
            lost_work=self.disrupted.lost_work.book.drain_lost(),
            jobs=self.jobs.drain_changed(),
            progress=self.progress.drain_reached(),
            priority_classes=self.policy.classes.drain_versions(),
            waits=self.waiting.book.drain_rows(),
            uncreated_waits=self.uncreated.waits.drain_rows(),
            series=self.totals.drain(),
            known_values=self.limiter.drain(),
            resumes=resumes,
            interruptions=interruptions,
            assignment_usage=held,
            unallocated_usage=unallocated,
            departed=self.usage.drain_departed(),
            live=self.totals.lines(RECONCILED),
            has_waits=self.waiting.is_on,
        )

    def _upserted(self, event: Upserted, found: Object) -> None:
        if self.coverage.is_listing:
            self.coverage.note(event.kind, found.metadata.uid)
        readers = self._readers.of(event.kind, found)
        match found:
            case Pod():
                self.pods.seen(found, at_us=event.at_us, since_us=event.since_us)
            case Node():
                for changed in self.nodes.seen(found, at_us=event.at_us, since_us=event.since_us):
                    self._reclassify(changed, at_us=event.at_us)
        for part in readers:
            part.seen(found, at_us=event.at_us)
        if self.disrupted.lost_work.container_restarts.lost:  # before another event changes their tier or tenant
            self.reconcile()
            self.disrupted.lost_work.account_restarts(self.now_us)

    def _reclassify(self, changed: Reclassified | None, *, at_us: int) -> None:
        if changed:
            self.pods.reclassify(changed, at_us=at_us)
            self.waiting.node_reclassified(changed.name)
            self.usage.reclassify(changed, at_us=at_us)

    def _deleted(self, event: Deleted, found: Object) -> None:
        readers = self._readers.of(event.kind, found)
        match found:
            case Pod():
                self.waiting.released(found.metadata.uid, found.spec.node_name)
                for part in readers:
                    part.last_seen(found, at_us=event.at_us)
                if record := self.pods.gone(found, at_us=event.at_us, since_us=event.since_us):
                    self._pod_deleted(record, at_us=event.at_us)
            case Node():
                changed = self.nodes.gone(found.metadata.uid, at_us=event.at_us, since_us=event.since_us)
                self._reclassify(changed, at_us=event.at_us)
        for part in readers:
            part.gone(found.metadata.uid, at_us=event.at_us)

    def _pod_deleted(self, record: PodRecord, *, at_us: int) -> None:
        self.disrupted.pod_changed(record, at_us=at_us, is_gone=True)
        self.waiting.pod_changed(record, at_us=at_us, is_gone=True)
        self.progress.pod_deleted(record)
        self.usage.left(record, at_us=at_us, has_agent=self.agents.is_on(record.node))

    def _apply_response(self, observation: Observation) -> None:
        match observation:
            case WorkloadResolved():
                self.uncreated.resolved(observation)
            case OtherPod(uid=uid, version=version, since_us=since_us):
                if self.waiting.other_seen(observation):
                    self.coverage.note(Kind.PODS, uid)
                self._save_checkpoint(Kind.PODS, version, since_us)
            case ListedSeparately():
                self.waiting.listed_separately(observation)
                self.policy.labels.listed_separately(observation, self.pods.records)
            case OwnerResolved():
                self.pods.owner_seen(observation, at_us=self.now_us)
            case UsageReported():
                self.usage.seen(observation, complete_us=self.coverage.complete_us(Kind.PODS), reconcile=self.reconcile)

    def _relist_finished(self, listed: RelistFinished) -> None:
        """Known objects that are missing from the list were deleted during the gap in the watch."""
        found, since_us = self.coverage.complete(listed)
        self._delete_missing(listed.kind, found, at_us=listed.at_us, since_us=since_us)
        for part in self._readers.of_kind[listed.kind]:
            part.listed(found, at_us=listed.at_us)
        self._save_checkpoint(listed.kind, listed.version, listed.as_of_us)

    def _delete_missing(self, kind: Kind, found: set[str], *, at_us: int, since_us: int) -> None:
        """Delete all objects of `kind` except `found`."""
        if kind is Kind.PODS:
            for uid in self.pods.known() - found:
                record = self.pods.vanished(uid, at_us=at_us, since_us=since_us)
                self._pod_deleted(record, at_us=at_us)
                self.waiting.vanished(record)
        elif kind is Kind.NODES:
            for uid in self.nodes.known() - found:
                self._reclassify(self.nodes.gone(uid, at_us=at_us, since_us=since_us), at_us=at_us)

    def _save_checkpoint(self, kind: Kind, version: str, complete_us: int) -> None:
        """The watch is complete up to `complete_us` and resumes at `version`."""
        digest = self._pods_digest if kind is Kind.PODS else self._digest(kind)  # they have most events
        resume = Checkpoint(version=version, at_us=complete_us, rules=digest)
        stored = self.coverage.store_checkpoint(kind, resume)
        if stored and kind is Kind.NODES and complete_us >= self.nodes.lapses.next_us:
            for changed in self.nodes.lapse(complete_us):
                self._reclassify(changed, at_us=self.now_us)

    def _digest(self, kind: Kind) -> str:
        """Identifies the rules that filter and interpret objects of a kind; for nodes also the stored label keys."""
        if kind is Kind.NODES:
            return " ".join((self.rules.digest, NODE_READING, *sorted(self.pricing.label_keys)))
        if kind is Kind.PODS:
            return self._pods_digest
        if kind is Kind.NAMESPACES:  # the rules that classify all pods, which needs them
            return "" if self.pods.provisional else f"{self.rules.digest} {POD_READING}"
        return self.rules.digest
