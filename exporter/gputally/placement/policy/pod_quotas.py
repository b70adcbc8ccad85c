"""How many pods ResourceQuotas admit.

Source: k8s.io/apiserver pkg/admission/plugin/resourcequota/controller.go, CheckRequest.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gputally.model.objects.quota_spec import ScopeExpression
from gputally.model.placement.needs import Amounts
from gputally.model.placement.situation import QuotaState
from gputally.placement.objects.quota_scopes import CountedPod, counts


class PodQuota(Struct, frozen=True, kw_only=True, gc=False):
    """What a ResourceQuota limits of pods, by its own keys such as `requests.cpu`; see `Amounts` for the units.

    `used` lacks what its controller has not counted yet.
    """

    namespace: str
    name: str
    hard: Amounts
    used: Amounts
    terms: tuple[ScopeExpression, ...] = ()


class Admission(NamedTuple):
    """How many of some equal pods are admitted, and what refuses the next one, if anything does."""

    number: int
    refusal: QuotaState | None


class PodQuotas:
    """The quotas of a cluster, as pods use them up that are created one after the other."""

    def __init__(self, quotas: Iterable[PodQuota]) -> None:
        self._of: dict[str, list[PodQuota]] = {}
        for each in sorted(quotas, key=lambda quota: quota.name):
            self._of.setdefault(each.namespace, []).append(each)

    def admit(self, namespace: str, pod: CountedPod, usage: Mapping[str, int], count: int) -> Admission:
        """Create `count` equal pods which use so much of each key, as far as all quotas admit them."""
        counting = [each for each in self._of.get(namespace, ()) if counts(each.terms, pod)]
        limits = [state for each in counting for state in _states(each, usage)]
        first = min(limits, key=_copies, default=None)
        number = count if first is None else min(count, _copies(first))
        self._of[namespace] = [
            _after(each, usage, number) if each in counting else each for each in self._of.get(namespace, ())
        ]
        if first is None or number == count:
            return Admission(number, None)
        return Admission(number, replace(first, used=first.used + number * first.needed))


def _states(quota: PodQuota, usage: Mapping[str, int]) -> Iterator[QuotaState]:
    """Each of its limits that concerns the pod."""
    used = dict(quota.used)
    for key, hard in quota.hard:
        if (needed := usage.get(key, 0)) and key in used:
            yield QuotaState(name=quota.name, what=key, hard=hard, used=used[key], needed=needed)


def _copies(state: QuotaState) -> int:
    return max(0, (state.hard - state.used) // state.needed)


def _after(quota: PodQuota, usage: Mapping[str, int], number: int) -> PodQuota:
    used = tuple([(key, amount + number * usage.get(key, 0)) for key, amount in quota.used])
    return replace(quota, used=used)
