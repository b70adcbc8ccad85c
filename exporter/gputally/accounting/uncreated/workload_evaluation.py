"""What a workload lacks and why, from its object and its last refusal."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from gputally.accounting.policy.policy import Policy
from gputally.accounting.policy.quota_limits import is_gpu
from gputally.accounting.uncreated.failed_creates import FailedCreates
from gputally.accounting.uncreated.lacking import Key, Lacking
from gputally.accounting.uncreated.queued_workloads import QueueState
from gputally.accounting.uncreated.refusal import Refusal, reason_of
from gputally.accounting.uncreated.uncreated_jobs import UncreatedJobs
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


class WorkloadEvaluation:
    """Evaluates workloads by the classes, quotas and queues of now. `unreadable` are those that nobody may read."""

    def __init__(
        self,
        rules: Rules,
        policy: Policy,
        failed: FailedCreates,
        jobs: UncreatedJobs,
        queues: Mapping[Key, QueueState],
    ) -> None:
        self.unreadable: set[Key] = set()
        self._rules = rules
        self._policy = policy
        self._failed = failed
        self._jobs = jobs
        self._queues = queues

    def of(self, key: Key, lacking: Lacking | None, *, now_us: int) -> UncreatedWorkload | None:
        """The workload, from what its own object says that it lacks, if it was read."""
        refusal = self._failed.of(*key)
        if lacking is None:
            return self._by_event(key, refusal, now_us=now_us) if refusal else None
        if lacking.queue:
            return self._queued_workload(lacking)
        if refusal is None:
            return None
        quota = self._quota_now(key[0], refusal)
        return self._workload(lacking, reason_of(quota), refusal.text, since_us=refusal.first_us, quota=quota)

    def _queued_workload(self, lacking: Lacking) -> UncreatedWorkload:
        state = self._queues.get(key_of(lacking.owner))
        text = ": ".join(filter(None, (f"Kueue, queue {lacking.queue}", state.text if state else "")))
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
            labels=lacking.labels,
        )

    def _by_event(self, key: Key, refusal: Refusal, *, now_us: int) -> UncreatedWorkload | None:
        """A workload whose object cannot be read, if a quota of GPUs refuses at least one of its pods."""
        owner, quota = self._failed.owner_of(*key), refusal.quota
        if owner is None or quota is None or not is_gpu(quota.what, self._rules) or not self._is_unread(owner):
            return None
        if refusal.at_us <= now_us - _SILENT_US:
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
            reason=reason_of(quota),
            text=refusal.text,
            quota=quota,
        )

    def _is_unread(self, owner: Owner) -> bool:
        kind = kind_of(owner)
        return not self._jobs.is_listed if kind == _JOB else kind not in READABLE or key_of(owner) in self.unreadable

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
