"""Decides what a workload lacks and why, from its object, its last refusal and its latest pod."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from gputally.accounting.policy.policy import Policy
from gputally.accounting.policy.quotas import ANY, is_gpu
from gputally.accounting.uncreated.kueue_workloads import QueueState
from gputally.accounting.uncreated.missing_pods import Key, Lacking, UncreatedJobs
from gputally.accounting.uncreated.refusals import FailedCreates, Refusal, reason_of
from gputally.frameworks.kueue import queue_words
from gputally.model.kube.meta import Owner
from gputally.model.needs import QuotaState
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.model.units import US_PER_SECOND
from gputally.model.verdicts import Reason
from gputally.model.waits import UNKNOWN_TIER, UncreatedWorkload
from gputally.shares.schemes import covered

READABLE: Final = frozenset({("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet")})
"""The kinds that are looked up, by API version."""
_JOB: Final = ("batch/v1", "Job")
_SILENT_US: Final = 1800 * US_PER_SECOND
"""How long an Event alone counts: nobody knows whether its workload still lacks pods."""
_MOST_DEVICES: Final = 10**9


class RecentPods:
    """The latest creation (µs) of a pod with GPUs by the namespace and UID of its controller.

    Older ones than a refusal that still counts are forgotten. Creation times are those of the API server.
    """

    def __init__(self) -> None:
        self._since_us = 0
        self._created: dict[Key, int] = {}

    def key_of(self, record: PodRecord) -> Key | None:
        """The controller of a pod that is later than all of its pods that are known."""
        if record.created_us <= self._since_us or record.owner is None:
            return None
        key = record.namespace, record.owner.uid
        return key if record.created_us > self._created.get(key, 0) else None

    def put(self, key: Key, created_us: int) -> None:
        """Note that the latest pod of a workload was created at this time (µs)."""
        self._created.pop(key, None)  # the latest come last
        self._created[key] = created_us

    def created_us(self, key: Key) -> int:
        """When its latest pod was created; 0 if that is long ago."""
        return self._created.get(key, 0)

    def forget(self, until_us: int) -> None:
        """Forget the pods that were created until then."""
        self._since_us = max(self._since_us, until_us)
        while self._created:
            key = next(iter(self._created))
            if self._created[key] > until_us:
                return
            del self._created[key]


class WorkloadEvaluation:
    """Evaluates workloads by the classes, quotas and queues of now.

    `unreadable` are those that nobody may read, `pods` the recent pods of controllers.
    """

    def __init__(
        self,
        rules: Rules,
        policy: Policy,
        failed: FailedCreates,
        jobs: UncreatedJobs,
        queues: Mapping[Key, QueueState],
    ) -> None:
        self.unreadable: set[Key] = set()
        self.pods = RecentPods()
        self._rules = rules
        self._policy = policy
        self._failed = failed
        self._jobs = jobs
        self._queues = queues

    def of(self, key: Key, lacking: Lacking) -> UncreatedWorkload | None:
        """The workload, from what its own object says that it lacks; None if nothing refuses its pods."""
        if lacking.queue:
            return self._queued_workload(lacking)
        refusal = self._failed.of(*key)
        if refusal is None:
            return None
        quota = self._quota_now(key[0], refusal)
        return self._workload(lacking, reason_of(quota), refusal.text, since_us=refusal.first_us, quota=quota)

    def _queued_workload(self, lacking: Lacking) -> UncreatedWorkload:
        state = self._queues.get(key_of(lacking.owner))
        text = ": ".join(filter(None, (queue_words(lacking.queue), state.text if state else "")))
        reason = Reason.QUOTA_NEVER if state and state.is_never else Reason.QUEUED
        return self._workload(lacking, reason, text, since_us=lacking.since_us)

    def _workload(
        self, lacking: Lacking, reason: Reason, text: str, *, since_us: int, quota: QuotaState | None = None
    ) -> UncreatedWorkload:
        return UncreatedWorkload(
            owner=lacking.owner,
            job_kind=lacking.job_kind,
            job=lacking.job,
            tier=self._policy.tier_of(lacking.class_name, lacking.labels),
            class_name=lacking.class_name or self._policy.classes.default(),
            pods=lacking.pods,
            quantity=lacking.quantity,
            since_us=since_us,
            reason=reason,
            text=text,
            quota=quota,
            gpu_model=lacking.gpu_model,
            needs=lacking.needs,
            labels=lacking.labels,
        )

    def is_admitted(self, key: Key) -> bool:
        """Whether a pod of the workload was created since one was refused, to the second of both."""
        refusal = self._failed.of(*key)
        return refusal is not None and self.pods.created_us(key) >= refusal.at_us - refusal.at_us % US_PER_SECOND

    def by_event(self, key: Key, *, now_us: int) -> UncreatedWorkload | None:
        """A workload whose object is not read: at least one of its pods is refused. None for any other."""
        owner, refusal = self._failed.owner_of(*key), self._failed.of(*key)
        if owner is None or refusal is None or not self._counts_alone(key, refusal, now_us=now_us):
            return None
        quota = self._quota_now(key[0], refusal)
        return UncreatedWorkload(
            owner=owner,
            job_kind=owner.reference.kind,
            job=owner.reference.name,
            tier=self._tier_by(key[0], refusal.quota),
            class_name=None,
            pods=1,
            quantity=self._quantity(refusal.quota),
            since_us=max(refusal.first_us, self.pods.created_us(key)),
            reason=reason_of(quota),
            text=refusal.text,
            quota=quota,
        )

    def _counts_alone(self, key: Key, refusal: Refusal, *, now_us: int) -> bool:
        """Whether only an Event says that the workload lacks pods, and nothing has shown since that it does not.

        A queue says of the jobs that it holds back what they lack, of each set of pods.
        """
        owner = self._failed.owner_of(*key)
        is_unread = owner is not None and self._is_unread(owner) and key not in self._queues
        return is_unread and refusal.at_us > now_us - _SILENT_US and not self.is_admitted(key)

    def _quantity(self, quota: QuotaState | None) -> int:
        """µGPU of a pod that a quota of GPUs refuses; 0 if the refusal does not say."""
        if quota is None or not is_gpu(quota.what, self._rules):
            return 0
        return covered(((quota.what, min(quota.needed, _MOST_DEVICES)),), (), self._rules)

    def _tier_by(self, namespace: str, quota: QuotaState | None) -> str:
        """The tier of the pods that a watched quota counts, if they have the same."""
        limit = self._policy.quotas.limit(namespace, quota.name, quota.what) if quota else None
        tier = self._policy.quotas.tier_of(limit) if limit else ANY
        return UNKNOWN_TIER if tier == ANY else tier

    def _is_unread(self, owner: Owner) -> bool:
        kind = kind_of(owner)
        if kind == _JOB:
            return self._jobs.listed_us is None
        return kind not in READABLE or key_of(owner) in self.unreadable

    def _quota_now(self, namespace: str, refusal: Refusal) -> QuotaState | None:
        """The quota that refused the pods, as it is now if ResourceQuotas are watched."""
        quota = refusal.quota
        limit = self._policy.quotas.limit(namespace, quota.name, quota.what) if quota else None
        if quota is None or limit is None:
            return quota
        return replace(quota, hard=limit.hard, used=quota.used if limit.used is None else limit.used)


def key_of(owner: Owner) -> Key:
    """The key of a workload."""
    return owner.namespace, owner.reference.uid


def kind_of(owner: Owner) -> tuple[str, str]:
    """The API version and the kind of a workload."""
    return owner.reference.api_version, owner.reference.kind
