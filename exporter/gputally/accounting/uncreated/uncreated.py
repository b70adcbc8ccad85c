"""Workloads that lack pods with GPUs, and why: refused by a quota or by admission, or held back by a queue.

It is all live state but for what was charged: after a restart, the Jobs and Events are listed again.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.coverage import Coverage
from gputally.accounting.base.limits import LimitOverflow
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.policy.policy import Policy
from gputally.accounting.terms.tenant import Namespaces
from gputally.accounting.totals.totals import Totals
from gputally.accounting.uncreated.evaluation import READABLE, WorkloadEvaluation, key_of, kind_of
from gputally.accounting.uncreated.kueue_workloads import QueuedWorkloads
from gputally.accounting.uncreated.missing_pods import Key, Lacking, UncreatedJobs, lacking_of_workload
from gputally.accounting.uncreated.refusals import KEPT_US, RETRIED_US, FailedCreates
from gputally.accounting.uncreated.snapshot import Sums, UncreatedNow, Workloads
from gputally.accounting.uncreated.waits import UncreatedPodsBook
from gputally.accounting.wait_book.book import WaitBook
from gputally.model.kube.events import Event
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object, Owner
from gputally.model.observation import WorkloadResolved
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.model.units import US_PER_SECOND
from gputally.model.verdicts import Reason
from gputally.model.waits import Uncharged, UncreatedPodsSegment, UncreatedWorkload

if TYPE_CHECKING:
    from gputally.model.needs import Needs

_RENEW_US: Final = 60 * US_PER_SECOND


class Uncreated(StatePart[Struct]):
    """The workloads by namespace and UID. This part observes the Events; without the feature, `is_on` is False."""

    name = "uncreated"
    kinds = (Kind.FAILED_CREATES,)

    def __init__(
        self,
        rules: Rules,
        policy: Policy,
        namespaces: Namespaces,
        waits: WaitBook,
        coverage: Coverage,
        *,
        totals: Totals,
    ) -> None:
        self.is_on = waits.is_on
        self.waits = UncreatedPodsBook(totals, is_on=waits.is_on)
        self.failed = FailedCreates(rules)
        self._jobs = UncreatedJobs(self.lacks, rules)
        self._queued = QueuedWorkloads(self.lacks, self._explained, rules)
        self._rules = rules
        self._reads_events = waits.is_on and Kind.FAILED_CREATES in rules.watched
        self._namespaces = namespaces
        self._policy = policy
        self._coverage = coverage
        self._terms = waits.terms
        self._lacking: dict[Key, Lacking] = {}
        self._evaluation = WorkloadEvaluation(rules, policy, self.failed, self._jobs, self._queued.states)
        self._known: dict[Key, UncreatedWorkload] = {}
        self._unmeasured: dict[Key, UncreatedWorkload] = {}
        """Workloads of which nothing says how many GPUs their pods request, if any."""
        self._unmeasured_workloads: dict[Key, Reason] = {}
        """Reasons of workloads of which nothing says how many GPUs, or whose Event states an incredible number."""
        self._unpriced: dict[Key, tuple[Needs | None, str]] = {}
        """The needs and tiers of those that are charged before their prices are found out, in order of their turn."""
        self._outdated: dict[Key, int] = {}  # since when
        self._at_limit: set[str] = set()
        """Namespaces of which some pods are not charged, because of what its other workloads lack."""
        self._wanted: set[Owner] = set()
        self._sums = Sums(waits.terms.shown_tier)
        self._jobs_listed_us: int | None = None
        self._started_us: int | None = None
        self._knows_pods = False
        self._class_changes = self._namespace_changes = self._price_changes = 0
        self._now_us = self._renewed_us = 0

    @property
    def limit_overflow(self) -> LimitOverflow:
        """See `StatePart.limit_overflow`."""
        return self.failed.limit_overflow

    @property
    def parts(self) -> tuple[StatePart[Any], ...]:
        """This part, those for Jobs and Workloads of Kueue, and the waits; only these without the feature."""
        return (self, self._jobs, self._queued, self.waits) if self.is_on else (self.waits,)

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`; an Event that cannot be one of a workload says nothing."""
        self._now_us = max(self._now_us, at_us)
        if not isinstance(found, Event):
            return
        self._renew_before_change((found.metadata.namespace, found.involved_object.uid), before_us=at_us)
        if owner := self.failed.seen(found, at_us=at_us):
            self._invalidate(key_of(owner), at_us=at_us)
            if kind_of(owner) in READABLE:
                self._wanted.add(owner)

    def lacks(self, key: Key, lacking: Lacking | None, *, at_us: int) -> None:
        """What the workload itself says now; None if it lacks nothing or is gone, whatever Events have said before."""
        self._renew_before_change(key, before_us=at_us)
        if lacking:
            self._lacking[key] = lacking
        elif not self._lacking.pop(key, None) and not self.failed.of(*key) and not self.waits.of(key):
            return
        else:
            self._forget(key)
        self._invalidate(key, at_us=at_us)

    def pod_changed(self, record: PodRecord, *, at_us: int) -> None:
        """A pod with GPUs is new or has changed: whatever refused it before has admitted it."""
        if self._reads_events and (key := self._evaluation.pods.key_of(record)):
            self._renew_before_change(key, before_us=at_us)
            self._evaluation.pods.put(key, record.created_us)
            if self.failed.of(*key):
                self._invalidate(key, at_us=at_us)

    def pods_restored(self, records: Iterable[PodRecord], *, at_us: int) -> None:
        """The pods of an earlier process."""
        self._evaluation.pods.forget(at_us - KEPT_US)
        for record in records:
            self.pod_changed(record, at_us=at_us)

    def resolved(self, answer: WorkloadResolved) -> None:
        """A workload was looked up."""
        key = key_of(answer.owner)
        if not answer.is_known:
            self._evaluation.unreadable.add(key)
            self._invalidate(key, at_us=answer.at_us)
        elif self.failed.of(*key):
            found = answer.found
            lacking = lacking_of_workload(answer.owner, found, self._rules) if found else None
            self.lacks(key, lacking, at_us=answer.at_us)

    def drain_wanted(self) -> set[Owner]:
        """Workloads to look up that Events have named since the last call."""
        wanted, self._wanted = self._wanted, set()
        return wanted

    def is_refused(self, owner: Owner) -> bool:
        """Whether pods of the workload are refused, as far as is known."""
        return self.failed.of(*key_of(owner)) is not None

    def advance(self, now_us: int) -> None:
        """See `StatePart.advance`."""
        self._now_us = max(self._now_us, now_us)
        self._started_us = self._started_us or now_us
        if now_us >= self._renewed_us + _RENEW_US:  # prices change
            self._renewed_us = now_us
            self._invalidate(*self._known, at_us=now_us)
        for owner in self.failed.silent(now_us - RETRIED_US):
            self._invalidate(key_of(owner), at_us=now_us)
        self._evaluation.pods.forget(now_us - KEPT_US)
        self._renew()  # silence pauses a wait before it ends one
        for owner in self.failed.silent(now_us - KEPT_US):
            self._expire(owner)
        self._renew()

    def post(self, *, at_us: int) -> None:
        """Add what was charged since the last call to the counters."""
        self._now_us = max(self._now_us, at_us)
        if self.is_on:
            self._renew()
        self.waits.post()

    def workloads(self, *, at_us: int) -> Workloads:
        """All workloads that lack pods at that time. Whoever wants to know may finish the list in a thread."""
        self._now_us = max(self._now_us, at_us)
        self._renew()
        known = self._known | self._unmeasured
        places = {(each.owner.namespace, each.labels) for each in known.values()}
        tenants = {place: self._namespaces.tenant_in(*place) for place in places}
        return Workloads(known, tenants=tenants, waits=dict(self.waits.known))

    def read(self) -> UncreatedNow | None:
        """The sums as of the last `post`; None without the feature."""
        if not self.is_on:
            return None
        self._renew()
        is_watched = self._reads_events and Kind.QUOTAS in self._rules.watched
        return UncreatedNow(
            reasons=self._sums.reasons(),
            refused=dict(self._refused()) if is_watched else None,
            unmeasured_workloads=self._unmeasured_now() if self._reads_events else None,
            uncharged_pods=dict(self._sums.uncharged_pods),
        )

    def _refused(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Refused quantity (µGPU) by exported tier and tenant of the quotas, 0 too."""
        quotas = self._policy.quotas
        found = dict.fromkeys(quotas.read(), 0)
        for key, quantity in self._sums.by_quota.items():
            if shown := quotas.shown_as(key):
                found[shown] += quantity
        yield from found.items()

    def _unmeasured_now(self) -> dict[str, int]:
        found = dict.fromkeys((Reason.QUOTA_NEVER.value, Reason.QUOTA.value, Reason.REFUSED.value), 0)
        for reason in self._unmeasured_workloads.values():
            found[reason.value] += 1
        return found

    def _expire(self, owner: Owner) -> None:
        key = key_of(owner)
        self._forget(key)
        if kind_of(owner) in READABLE:
            self._lacking.pop(key, None)
        self._invalidate(key, at_us=self._now_us)

    def _forget(self, key: Key) -> None:
        self.failed.drop(*key)
        self._evaluation.unreadable.discard(key)

    def _explained(self, key: Key, *, at_us: int) -> None:
        if key in self._lacking or self.failed.of(*key):
            self._invalidate(key, at_us=at_us)

    def _invalidate(self, *keys: Key, at_us: int) -> None:
        """The workloads may have changed at that time."""
        for key in keys:
            self._outdated.setdefault(key, at_us)

    def _renew_before_change(self, key: Key, *, before_us: int) -> None:
        """Apply what has changed about a workload, before it changes again."""
        if self._outdated.get(key, before_us) < before_us:
            self._renew_one(key, self._outdated.pop(key))

    def _renew(self) -> None:
        if self._class_changes != self._policy.classes.changes:
            self._class_changes = self._policy.classes.changes
            self._invalidate(*self._lacking, *self._known, at_us=self._now_us)
        if self._jobs.listed_us and self._jobs_listed_us is None:
            self._jobs_listed_us = self._jobs.listed_us
            self._invalidate(*(key_of(owner) for owner, _ in self.failed), at_us=self._jobs_listed_us)
        if self._namespace_changes != self._namespaces.changes:
            self._namespace_changes = self._namespaces.changes
            self._invalidate(*self._known, at_us=self._now_us)
        if self._price_changes != (changes := self._terms.prices.renew()):
            self._price_changes = changes
            self._invalidate(*self._known, at_us=self._now_us)
        if not self._knows_pods and self._started_us and self._coverage.complete_us(Kind.PODS) >= self._started_us:
            self._knows_pods = True
            self._invalidate(*self._known, at_us=self._now_us)
        for namespace in self._policy.quotas.drain_changed():
            self._invalidate(*map(key_of, self.failed.in_namespace(namespace)), at_us=self._now_us)
        self._ask_for_prices()
        self._renew_all()

    def _renew_all(self) -> None:
        for key, at_us in self._outdated.items():
            self._renew_one(key, at_us)
        self._order(self._at_limit.intersection(namespace for namespace, _ in self._outdated))
        self._outdated.clear()

    def _ask_for_prices(self) -> None:
        """Whoever waits for the longest time comes first."""
        for key in tuple(self._unpriced) if self._terms.prices.can_check_nodes else ():
            if not self._terms.prices.can_check_nodes:
                return
            self._renew_one(key, self._outdated.get(key, self._now_us))

    def _renew_one(self, key: Key, at_us: int) -> None:
        before, lacking = self._known.pop(key, None), self._lacking.get(key)
        self._unmeasured.pop(key, None)
        after = self._evaluation.of(key, lacking) if lacking else self._evaluation.by_event(key, now_us=self._now_us)
        self._unmeasured_workloads.pop(key, None)
        after = self._limited(before, after) if after else None
        if after and after.is_at_least and not after.charged:
            self._unmeasured_workloads[key] = after.reason
        if after and after.quantity:
            self._known[key] = after
        elif after:
            self._unmeasured[key], after = after, None
        if after and after.uncharged is Uncharged.NAMESPACE_LIMIT:
            self._at_limit.add(key[0])
        self._put(key, before, after, at_us=at_us)

    def _put(self, key: Key, before: UncreatedWorkload | None, after: UncreatedWorkload | None, *, at_us: int) -> None:
        self._sums.replace(before, after, quota=self._quota_key(after))
        self._charge(key, after, at_us=at_us)

    def _order(self, namespaces: Iterable[str]) -> None:
        """In namespaces that are at their limit, charge the oldest workloads: no order of arrival matters."""
        found: dict[str, list[UncreatedWorkload]] = {each: [] for each in namespaces}
        for each in self._known.values() if found else ():
            if (namespace := each.owner.namespace) in found:
                found[namespace].append(each)
        for namespace, workloads in found.items():
            self._at_limit.discard(namespace)
            others = 0
            for before in sorted(workloads, key=lambda each: (each.since_us, each.owner.reference.uid)):
                after = self._charged(before, others=others)
                others += after.charged
                if after.uncharged is Uncharged.NAMESPACE_LIMIT:
                    self._at_limit.add(namespace)
                if after is not before:
                    self._known[key_of(after.owner)] = after
                    self._put(key_of(after.owner), before, after, at_us=self._now_us)

    def _limited(self, before: UncreatedWorkload | None, after: UncreatedWorkload) -> UncreatedWorkload:
        """With the pods that are charged; of a namespace at its limit, `_order` decides which."""
        if not after.quantity:
            return after
        others = self._sums.charged_in[after.owner.namespace] - (before.charged if before else 0)
        return self._charged(after, others=others)

    def _charged(self, workload: UncreatedWorkload, *, others: int) -> UncreatedWorkload:
        pods, quantity = workload.pods, workload.quantity
        charged, uncharged = self._terms.limits.charged_pods(pods, quantity, workload.gpu_model, others=others)
        if (workload.uncharged_pods, workload.uncharged) == (pods - charged, uncharged):
            return workload
        return replace(workload, uncharged_pods=pods - charged, uncharged=uncharged)

    def _charge(self, key: Key, workload: UncreatedWorkload | None, *, at_us: int) -> None:
        """Charge what its own object says that it lacks, or of one that is not read the pod that its quota refuses."""
        lacking, refusal = self._lacking.get(key), self.failed.of(*key)
        is_queued = bool(lacking and lacking.queue)
        silent_us = refusal.at_us + RETRIED_US if refusal and not is_queued else self._now_us
        if silent_us < self._now_us:
            self._find_out(key, at_us=at_us)
            self.waits.pause(key, end_us=silent_us, at_us=at_us)
        if workload is None or not workload.charged:
            self._find_out(key, at_us=at_us)
            is_known = not (lacking or refusal) or self._evaluation.is_admitted(key)
            self.waits.lacks_nothing(key, is_known=is_known, at_us=at_us)
        elif silent_us >= self._now_us and (self._knows_pods or not workload.is_at_least):
            last, wait = self.waits.of(key), self._wait(key, workload, is_queued=is_queued)
            if last and wait.awaits_price and not last.equals_but_for_time(wait):  # the last one ends
                wait = self._wait(key, workload, is_queued=is_queued, is_urgent=True)
            self.waits.charge(wait, since_us=workload.since_us, at_us=at_us)

    def _wait(
        self, key: Key, workload: UncreatedWorkload, *, is_queued: bool, is_urgent: bool = False
    ) -> UncreatedPodsSegment:
        """With the prices that were charged last, as long as those of now are not found out."""
        last, asked = self.waits.of(key), (workload.needs, workload.tier)
        prices = self._terms.prices.of(*asked, is_urgent=is_urgent)
        if prices is not None:
            self._unpriced.pop(key, None)
        else:
            self._unpriced[key] = asked
            prices = last.prices if last and not last.awaits_price else None
        tenant = self._namespaces.tenant_in(key[0], workload.labels)
        return self._terms.uncreated(workload, tenant, prices, uid=key[1], is_queued=is_queued)

    def _find_out(self, key: Key, *, at_us: int) -> None:
        """The prices of a wait that ends: nobody asks for them later."""
        if (asked := self._unpriced.pop(key, None)) and (prices := self._terms.prices.of(*asked, is_urgent=True)):
            self.waits.price(key, prices, at_us=at_us)

    def _quota_key(self, workload: UncreatedWorkload | None) -> tuple[str, str] | None:
        """The complete tier and tenant of the watched quota that refuses the pods."""
        if workload is None or workload.quota is None:
            return None
        quotas, namespace = self._policy.quotas, workload.owner.namespace
        limit = quotas.limit(namespace, workload.quota.name, workload.quota.what)
        return (quotas.tier_of(limit), self._namespaces.tenant_in(namespace)) if limit else None
