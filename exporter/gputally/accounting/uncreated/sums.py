"""Sums of pods that were not created, kept up to date with each workload that changes."""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import TypeVar

from gputally.model.waits import Uncharged, UncreatedWorkload

K = TypeVar("K", bound=Hashable)
TierReason = tuple[str, str]
TierTenant = tuple[str, str]


class Sums:
    """Pods and µGPU by complete tier and reason, and µGPU by complete tier and tenant of the quota that refuses.

    µGPU are those that are charged: anyone may ask for any number.

    `shown_tier` is how a tier is exported.
    """

    def __init__(self, shown_tier: Callable[[str], str]) -> None:
        self.by_quota: Counter[TierTenant] = Counter()
        self._shown_tier = shown_tier
        self._pods: Counter[TierReason] = Counter()
        self._quantity: Counter[TierReason] = Counter()
        self.charged_in: Counter[str] = Counter()
        """By namespace."""
        self.uncharged_pods = Counter[Uncharged]()
        """Pods whose wait is not charged."""
        self._exported: set[TierReason] = set()
        self._counted_by: dict[tuple[str, str], TierTenant] = {}
        """The quota under which a workload counts, by its namespace and UID."""

    def replace(
        self, before: UncreatedWorkload | None, after: UncreatedWorkload | None, *, quota: TierTenant | None
    ) -> None:
        """A workload has changed; `quota` is the one under which it counts from now on."""
        if before:
            self._add(before, -1)
            if counted := self._counted_by.pop(_key(before), None):
                _count(self.by_quota, counted, -before.charged)
        if after:
            self._add(after, 1)
            if quota:
                self._counted_by[_key(after)] = quota
                _count(self.by_quota, quota, after.charged)

    def reasons(self) -> dict[TierReason, tuple[int, int]]:
        """Pods and µGPU by exported tier and reason, including 0 for those that had some, so that alerts resolve."""
        found = dict.fromkeys(sorted(self._exported), (0, 0))
        for (tier, reason), pods in self._pods.items():
            key = self._shown_tier(tier), reason
            known = found.get(key, (0, 0))
            found[key] = known[0] + pods, known[1] + self._quantity[tier, reason]
        self._exported.update(found)
        return found

    def _add(self, workload: UncreatedWorkload, sign: int) -> None:
        key = workload.tier, workload.reason.value
        _count(self._pods, key, sign * workload.pods)
        _count(self._quantity, key, sign * workload.charged)
        _count(self.charged_in, workload.owner.namespace, sign * workload.charged)
        if workload.uncharged:
            _count(self.uncharged_pods, workload.uncharged, sign * workload.uncharged_pods)


def _count(sums: Counter[K], key: K, change: int) -> None:
    sums[key] += change
    if not sums[key]:
        del sums[key]


def _key(workload: UncreatedWorkload) -> tuple[str, str]:
    return workload.owner.namespace, workload.owner.reference.uid
