"""ResourceQuotas: which pods they count, what these use, and how many are admitted.

Sources: k8s.io/kubernetes pkg/quota/v1/evaluator/core/pods.go, PodUsageFunc and podComputeUsageHelper;
k8s.io/apiserver pkg/admission/plugin/resourcequota/controller.go, CheckRequest.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gputally.errors import MalformedObject
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import Container
from gputally.model.kube.policy import QuotaSpec, ResourceQuota, ScopeExpression
from gputally.model.needs import Amounts, QuotaState
from gputally.model.quantities import CPU, EPHEMERAL_STORAGE, LIMITS, MEMORY, PODS, PODS_KEYS, REQUESTS, resource_of
from gputally.placement.needs import amounts_of
from gputally.placement.resource_requests import amount_of
from gputally.shares.request import peak_of

BY_CLASS: Final = "PriorityClass"
"""The scope that reads the class of a pod."""
_NATIVE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_HUGEPAGES: Final = "hugepages-"
_OF_CLAIMS: Final = "requests.storage"
_MOST_KEYS: Final = 64
"""More than a quota about pods has."""


class CountedPod(Struct, frozen=True, kw_only=True, gc=False):
    """What scopes read of a pod. A pod is `best_effort` if it neither requests nor limits CPU or memory.

    It is `terminating` if it has an activeDeadlineSeconds.
    """

    class_name: str
    best_effort: bool = False
    terminating: bool = False


def terms_of(spec: QuotaSpec) -> tuple[ScopeExpression, ...]:
    """The requirements of the selector, and the older scopes as such."""
    selector = spec.scope_selector
    expressions = (selector.match_expressions or ()) if selector else ()
    return (*expressions, *(ScopeExpression(scope_name=name, operator="Exists") for name in spec.scopes or ()))


def matches_class(term: ScopeExpression, class_name: str) -> bool:
    """Whether the class name matches, as by a label selector: NotIn and DoesNotExist match pods without one, too."""
    match term.operator:
        case "In":
            return class_name in (term.values or ())
        case "NotIn":
            return class_name not in (term.values or ())
        case "Exists":
            return bool(class_name)
        case _:
            return not class_name


def counts(terms: Iterable[ScopeExpression], pod: CountedPod) -> bool:
    """Whether a quota with these scopes counts the pod; scopes that are not modelled count none.

    Source: k8s.io/kubernetes pkg/quota/v1/evaluator/core/pods.go, podMatchesScopeFunc.
    """
    return all(_matches(each, pod) for each in terms)


def _matches(term: ScopeExpression, pod: CountedPod) -> bool:
    match term.scope_name:
        case "PriorityClass":
            return matches_class(term, pod.class_name)
        case "BestEffort":
            return pod.best_effort
        case "NotBestEffort":
            return not pod.best_effort
        case "Terminating":
            return pod.terminating
        case "NotTerminating":
            return not pod.terminating
    return False


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


def usage_of(pod: PlaceablePod) -> dict[str, int]:
    """What the pod uses, by the keys of quotas. Raises: MalformedObject for an invalid quantity."""
    found = dict.fromkeys(PODS_KEYS, 1)
    for resource, amount in amounts_of(pod):
        if resource != PODS:
            found[f"{REQUESTS}{resource}"] = amount
        if resource in _NATIVE or resource.startswith(_HUGEPAGES):
            found[resource] = amount
    return found | {f"{LIMITS}{resource}": amount for resource, amount in _limits(pod).items() if resource in _NATIVE}


def counted_pod(pod: PlaceablePod) -> CountedPod:
    """What the scopes of quotas read of the pod."""
    containers = (*(pod.spec.init_containers or ()), *pod.spec.containers)
    given = [each.resources for each in containers] + [pod.spec.resources]
    named = {name for each in given if each for name in {**(each.requests or {}), **(each.limits or {})}}
    return CountedPod(
        class_name=pod.spec.priority_class_name,
        best_effort=named.isdisjoint((CPU, MEMORY)),
        terminating=pod.spec.active_deadline_seconds is not None,
    )


def quota_of(found: ResourceQuota) -> PodQuota:
    """What the quota limits of pods. Raises: MalformedObject for an invalid quantity."""
    meta, status = found.metadata, found.status
    hard = {**(found.spec.hard or {}), **(status.hard or {})} if status.hard else found.spec.hard or {}
    try:
        return PodQuota(
            namespace=meta.namespace,
            name=meta.name,
            hard=_amounts(hard),
            used=_amounts(status.used or {}),
            terms=terms_of(found.spec),
        )
    except ValueError as error:
        raise MalformedObject(meta.uid, f"quota {meta.namespace}/{meta.name}: {error}") from None


def _amounts(given: Mapping[str, str | int]) -> Amounts:
    keys = sorted(key for key in given if _is_about_pods(key))[:_MOST_KEYS]
    return tuple([(key, amount_of(resource_of(key), given[key])) for key in keys])


def _is_about_pods(key: str) -> bool:
    if key in PODS_KEYS or key in _NATIVE:
        return True
    return key.startswith((REQUESTS, LIMITS, _HUGEPAGES)) and key != _OF_CLAIMS


def _limits(pod: PlaceablePod) -> Mapping[str, int]:
    init_containers = pod.spec.init_containers or ()
    try:
        limits = peak_of(init_containers, [_limits_of(each) for each in (*init_containers, *pod.spec.containers)])
        return dict(limits) | _amounts_in(pod.spec.resources.limits if pod.spec.resources else None)
    except ValueError as error:
        raise MalformedObject(pod.metadata.uid, str(error)) from None


def _limits_of(container: Container) -> dict[str, int]:
    return _amounts_in(container.resources.limits if container.resources else None)


def _amounts_in(given: Mapping[str, str | int] | None) -> dict[str, int]:
    return {name: amount_of(name, quantity) for name, quantity in (given or {}).items()}
