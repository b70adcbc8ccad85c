"""Shows the pods that do not exist at one instant: in sums with bounded labels, and workload by workload."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.uncreated.missing_pods import Key
from gputally.model.price import PriceRange
from gputally.model.waits import Uncharged, UncreatedPodsSegment, UncreatedWorkload, key_of

K = TypeVar("K", bound=Hashable)
TierReason = tuple[str, str]
TierTenant = tuple[str, str]
Labels = tuple[tuple[str, str], ...]


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
        """Charged quantity (µGPU) by namespace."""
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


class UncreatedNow(Struct, frozen=True, kw_only=True):
    """Sums of the pods with GPUs that workloads lack.

    `reasons` are pods and their µGPU by exported tier and reason. `refused` are the µGPU of pods that a quota refuses,
    by the exported tier and tenant of the quota; None unless both are watched. `unmeasured_workloads` are those
    by reason whose wait is not charged, as no Event states a credible number of GPUs; None unless refusals are watched.
    `uncharged_pods` are the pods whose wait is not charged, as the cluster could never give as many GPUs.
    """

    reasons: Mapping[tuple[str, str], tuple[int, int]] = {}
    refused: Mapping[tuple[str, str], int] | None = None
    unmeasured_workloads: Mapping[str, int] | None = None
    uncharged_pods: Mapping[Uncharged, int] = {}


class Workloads(NamedTuple):
    """Workloads, tenants by namespace and labels, and what is charged, by key. Nobody changes it."""

    known: Mapping[Key, UncreatedWorkload] = {}
    tenants: Mapping[tuple[str, Labels], str] = {}
    waits: Mapping[str, UncreatedPodsSegment] = {}

    def described(self) -> list[UncreatedWorkload]:
        """With their tenants and charged prices, the oldest first; at the end those of which no request is known."""
        found = [
            replace(each, tenant=self.tenants[each.owner.namespace, each.labels], prices=self._prices(key))
            for key, each in self.known.items()
        ]
        return sorted(
            found, key=lambda each: (not each.quantity, each.since_us, each.owner.namespace, each.owner.reference.uid)
        )

    def _prices(self, key: Key) -> PriceRange:
        wait = self.waits.get(key_of(*key))
        return wait.prices if wait else PriceRange()
