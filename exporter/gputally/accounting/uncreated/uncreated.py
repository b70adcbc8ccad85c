"""Workloads that lack pods with GPUs, and why: refused by a quota or by admission, or held back by a queue.

It is all live state: after a restart, the Jobs and Events are listed again.
"""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.policy.policy import Policy
from gputally.accounting.policy.quota_limits import is_gpu
from gputally.accounting.state_part import StatePart
from gputally.accounting.terms.namespaces import Namespaces
from gputally.accounting.terms.tier import tier_of
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.accounting.uncreated.failed_creates import KEPT_US, FailedCreates
from gputally.accounting.uncreated.lacking import Key, Lacking, lacking_of_workload
from gputally.accounting.uncreated.queued_workloads import QueuedWorkloads
from gputally.accounting.uncreated.refusal import Refusal
from gputally.accounting.uncreated.sums import Sums
from gputally.accounting.uncreated.uncreated_jobs import UncreatedJobs
from gputally.accounting.uncreated.uncreated_now import UncreatedNow
from gputally.accounting.uncreated.workloads import Workloads
from gputally.accounting.waiting.wait_book import WaitBook
from gputally.model.kube import Event, Kind, Object
from gputally.model.observation import WorkloadResolved
from gputally.model.owner import Owner
from gputally.model.placement.situation import QuotaState
from gputally.model.placement.uncreated_workload import UNKNOWN_TIER, UncreatedWorkload
from gputally.model.placement.verdict import Reason
from gputally.model.rules import Rules
from gputally.model.units import US_PER_SECOND
from gputally.shares.schemes import covered

READABLE: Final = frozenset({("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet")})
"""The kinds that are looked up, by API version."""
_JOB: Final = ("batch/v1", "Job")
_SILENT_US: Final = 1800 * US_PER_SECOND
"""How long an Event alone counts: nobody knows whether its workload still lacks pods."""
_MOST_DEVICES: Final = 10**9


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
        limiter: LabelLimiter,
    ) -> None:
        self.is_on = waits.is_on
        self.failed = FailedCreates(rules)
        self._jobs = UncreatedJobs(self.lacks, rules)
        self._queued = QueuedWorkloads(self.lacks, self._outdate, rules)
        self._rules = rules
        self._namespaces = namespaces
        self._policy = policy
        self._terms = waits.terms
        self._lacking: dict[Key, Lacking] = {}
        self._known: dict[Key, UncreatedWorkload] = {}
        self._outdated: set[Key] = set()
        self._wanted: set[Owner] = set()
        self._unreadable: set[Key] = set()
        self._sums = Sums(limiter)
        self._class_changes = 0
        self._namespace_changes = 0
        self._now_us = 0

    @property
    def parts(self) -> tuple[StatePart[Any], ...]:
        """This part, and those for Jobs and Workloads of Kueue; none without the feature."""
        return (self, self._jobs, self._queued) if self.is_on else ()

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`; an Event that cannot be one of a workload says nothing."""
        self._now_us = max(self._now_us, at_us)
        owner = self.failed.seen(found, at_us=at_us) if isinstance(found, Event) else None
        if owner:
            self._outdated.add(_key(owner))
            if _kind(owner) in READABLE:
                self._wanted.add(owner)

    def lacks(self, key: Key, lacking: Lacking | None) -> None:
        """What the workload itself says now; None if it lacks nothing or is gone, whatever Events have said before."""
        if lacking:
            self._lacking[key] = lacking
        elif not self._lacking.pop(key, None) and not self.failed.of(*key):
            return
        else:
            self._forget(key)
        self._outdated.add(key)

    def resolved(self, answer: WorkloadResolved) -> None:
        """A workload was looked up."""
        key = _key(answer.owner)
        if not answer.is_known:
            self._unreadable.add(key)
            self._outdated.add(key)
        elif self.failed.of(*key):
            found = answer.found
            self.lacks(key, lacking_of_workload(answer.owner, found, self._rules) if found else None)

    def drain_wanted(self) -> set[Owner]:
        """Workloads to look up that Events have named since the last call."""
        wanted, self._wanted = self._wanted, set()
        return wanted

    def is_refused(self, owner: Owner) -> bool:
        """Whether pods of the workload are refused, as far as is known."""
        return self.failed.of(*_key(owner)) is not None

    def advance(self, now_us: int) -> None:
        """See `StatePart.advance`."""
        self._now_us = max(self._now_us, now_us)
        for owner in self.failed.silent(now_us - KEPT_US):
            self._expire(owner)
        self._outdated.update(map(_key, self.failed.silent(now_us - _SILENT_US)))
        self._renew()

    def workloads(self) -> Workloads:
        """All workloads that lack pods. Whoever wants to know may finish the list in a thread."""
        self._renew()
        known = tuple(self._known.values())
        places = {(each.owner.namespace, each.labels) for each in known}
        assets = {(each.gpu_model, each.tier) for each in known}
        return Workloads(
            known,
            tenants={place: self._namespaces.tenant_in(*place) for place in places},
            prices={asset: self._terms.price_of(*asset) for asset in assets},
        )

    def read(self) -> UncreatedNow | None:
        """The sums; None without the feature."""
        if not self.is_on:
            return None
        self._renew()
        is_watched = {Kind.FAILED_CREATES, Kind.QUOTAS} <= {*self._rules.watched}
        return UncreatedNow(reasons=self._sums.reasons(), refused=dict(self._refused()) if is_watched else None)

    def _refused(self) -> Iterator[tuple[tuple[str, str], int]]:
        """By exported tier and tenant of the quotas, 0 too."""
        quotas = self._policy.quotas
        found = dict.fromkeys(quotas.read(), 0)
        for key, quantity in self._sums.by_quota.items():
            if shown := quotas.shown_as(key):
                found[shown] += quantity
        yield from found.items()

    def _expire(self, owner: Owner) -> None:
        key = _key(owner)
        self._forget(key)
        if _kind(owner) in READABLE:
            self._lacking.pop(key, None)
        self._outdated.add(key)

    def _forget(self, key: Key) -> None:
        self.failed.drop(*key)
        self._unreadable.discard(key)

    def _outdate(self, key: Key) -> None:
        if key in self._lacking:
            self._outdated.add(key)

    def _renew(self) -> None:
        if self._class_changes != self._policy.classes.changes:
            self._class_changes = self._policy.classes.changes
            self._outdated.update(self._lacking)
        if self._namespace_changes != self._namespaces.changes:
            self._namespace_changes = self._namespaces.changes
            self._outdated.update(_key(owner) for owner, refusal in self.failed if refusal.quota)
        for namespace in self._policy.quotas.drain_changed():
            self._outdated.update(map(_key, self.failed.in_namespace(namespace)))
        for key in self._outdated:
            before, after = self._known.pop(key, None), self._evaluated(key)
            if after:
                self._known[key] = after
            self._sums.replace(before, after, quota=self._quota_key(after))
        self._outdated.clear()

    def _evaluated(self, key: Key) -> UncreatedWorkload | None:
        lacking, refusal = self._lacking.get(key), self.failed.of(*key)
        if lacking is None:
            return self._by_event(key, refusal) if refusal else None
        if lacking.queue:
            return self._queued_workload(lacking)
        if refusal is None:
            return None
        quota = self._quota_now(key[0], refusal)
        return self._workload(lacking, _reason(quota), refusal.text, since_us=refusal.first_us, quota=quota)

    def _queued_workload(self, lacking: Lacking) -> UncreatedWorkload:
        state = self._queued.states.get(_key(lacking.owner))
        text = ": ".join(filter(None, (f"Kueue, queue {lacking.queue}", state.text if state else "")))
        reason = Reason.QUOTA_NEVER if state and state.is_never else Reason.QUEUED
        return self._workload(lacking, reason, text, since_us=lacking.since_us)

    def _workload(
        self, lacking: Lacking, reason: Reason, text: str, *, since_us: int, quota: QuotaState | None = None
    ) -> UncreatedWorkload:
        classes = self._policy.classes
        class_name = lacking.class_name or classes.default()
        return UncreatedWorkload(
            owner=lacking.owner,
            job_kind=lacking.job_kind,
            job=lacking.job,
            tier=tier_of(class_name, classes.value_of(class_name), self._rules, lacking.labels),
            class_name=class_name,
            pods=lacking.pods,
            quantity=lacking.quantity,
            since_us=since_us,
            reason=reason,
            text=text,
            quota=quota,
            gpu_model=lacking.gpu_model,
            labels=lacking.labels,
        )

    def _by_event(self, key: Key, refusal: Refusal) -> UncreatedWorkload | None:
        """A workload whose object cannot be read, if a quota of GPUs refuses at least one of its pods."""
        owner, quota = self.failed.owner_of(*key), refusal.quota
        if owner is None or quota is None or not is_gpu(quota.what, self._rules) or not self._is_unread(owner):
            return None
        if refusal.at_us <= self._now_us - _SILENT_US:
            return None
        quota = self._quota_now(key[0], refusal)
        assert quota
        return UncreatedWorkload(
            owner=owner,
            job_kind=owner.reference.kind,
            job=owner.reference.name,
            tier=UNKNOWN_TIER,
            class_name=None,
            pods=1,
            quantity=covered(((quota.what, min(quota.needed, _MOST_DEVICES)),), (), self._rules),
            since_us=refusal.first_us,
            reason=_reason(quota),
            text=refusal.text,
            quota=quota,
        )

    def _is_unread(self, owner: Owner) -> bool:
        kind = _kind(owner)
        return not self._jobs.is_listed if kind == _JOB else kind not in READABLE or _key(owner) in self._unreadable

    def _quota_now(self, namespace: str, refusal: Refusal) -> QuotaState | None:
        """The quota that refused the pods, as it is now if ResourceQuotas are watched."""
        quota = refusal.quota
        limit = self._policy.quotas.limit(namespace, quota.name, quota.what) if quota else None
        if quota is None or limit is None:
            return quota
        return replace(quota, hard=limit.hard, used=quota.used if limit.used is None else limit.used)

    def _quota_key(self, workload: UncreatedWorkload | None) -> tuple[str, str] | None:
        """The complete tier and tenant of the watched quota that refuses the pods."""
        if workload is None or workload.quota is None:
            return None
        quotas, namespace = self._policy.quotas, workload.owner.namespace
        limit = quotas.limit(namespace, workload.quota.name, workload.quota.what)
        return (quotas.tier_of(limit), self._namespaces.tenant_in(namespace)) if limit else None


def _key(owner: Owner) -> Key:
    return owner.namespace, owner.reference.uid


def _kind(owner: Owner) -> tuple[str, str]:
    return owner.reference.api_version, owner.reference.kind


def _reason(quota: QuotaState | None) -> Reason:
    if quota is None:
        return Reason.REFUSED
    return Reason.QUOTA_NEVER if quota.needed > quota.hard else Reason.QUOTA
