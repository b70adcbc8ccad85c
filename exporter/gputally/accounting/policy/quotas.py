"""ResourceQuotas: the GPUs that they allow by tier and tenant, what is requested of it, and what else they limit."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from gputally.accounting.base.limits import SELECTOR_CHARACTERS, LimitOverflow, NamespaceLimit
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.policy.priority_classes import ClassVersions
from gputally.accounting.terms.tenant import Namespaces
from gputally.accounting.terms.tier import tier_of
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.errors import MalformedObject
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.policy import QuotaSpec, QuotaStatus, QuotaUse, ResourceQuota, ScopeExpression
from gputally.model.quantities import REQUESTS
from gputally.model.rules import Rules
from gputally.placement.quotas import BY_CLASS, matches_class, quota_of, terms_of
from gputally.shares.request import requested
from gputally.shares.schemes import describes, quantities_on, rule_of

if TYPE_CHECKING:
    from gputally.placement.quotas import PodQuota

MOST_LIMITS: Final = 64
"""GPU resources of a quota that are read."""
ANY: Final = "any"
"""The tier of quotas that count pods of several tiers, or of all."""
TierTenant = tuple[str, str]


class QuotaLimit(Struct, frozen=True, kw_only=True):
    """One GPU resource of a ResourceQuota, in devices. `used` is None if it is unknown, as in a manifest.

    `invalid` says why its limit cannot be read.
    """

    namespace: str
    name: str
    resource: str
    hard: int
    used: int | None
    terms: tuple[ScopeExpression, ...]
    invalid: str = ""

    @property
    def headroom(self) -> int | None:
        """What may still be requested; below 0 if the limit was lowered since."""
        return None if self.used is None else self.hard - self.used

    @property
    def is_by_class(self) -> bool:
        """Whether the class of a pod decides alone if the quota counts it: other scopes read what no class shows."""
        return not self.invalid and all(each.scope_name == BY_CLASS for each in self.terms)

    def counts(self, class_name: str) -> bool:
        """Whether it counts pods of the class, "" for none. Other scopes match no pod here.

        Source: k8s.io/kubernetes pkg/quota/v1/evaluator/core/pods.go, podMatchesScopeFunc.
        """
        return self.is_by_class and all(matches_class(each, class_name) for each in self.terms)


def quota_limits(
    namespace: str, name: str, spec: QuotaSpec, status: QuotaStatus, *, rules: Rules
) -> Iterator[QuotaLimit]:
    """The limits of a quota for GPU resources."""
    terms = terms_of(spec)
    for key, limit in (spec.hard or {}).items():
        resource = key.removeprefix(REQUESTS)
        if not key.startswith(REQUESTS) or not is_gpu(key, rules):
            continue
        hard, invalid = _amount(limit)
        used = (status.used or {}).get(key)
        yield QuotaLimit(
            namespace=namespace,
            name=name,
            resource=resource,
            hard=hard,
            used=None if used is None else _amount(used)[0],
            terms=terms,
            invalid=invalid,
        )


def is_short(spec: QuotaSpec) -> bool:
    """Whether the scopes of a quota are short enough to be kept."""
    texts = [text for each in terms_of(spec) for text in (each.scope_name, each.operator, *(each.values or ()))]
    return sum(map(len, texts)) + len(texts) <= SELECTOR_CHARACTERS


def is_gpu(resource: str, rules: Rules) -> bool:
    """Whether a resource of a quota counts GPUs, with the prefix or without."""
    name = resource.removeprefix(REQUESTS)
    return rule_of(name, rules) is not None and not describes(name, rules)


def _amount(limit: str | int) -> tuple[int, str]:
    try:
        return requested(limit), ""
    except ValueError as error:
        return 0, str(error)


class Quotas(StatePart[Struct]):
    """The existing quotas of GPUs by UID. They are listed again at each start."""

    name = "quota"
    kinds = (Kind.QUOTAS,)

    def __init__(self, rules: Rules, namespaces: Namespaces, classes: ClassVersions, limiter: LabelLimiter) -> None:
        self._rules = rules
        self._namespaces = namespaces
        self._classes = classes
        self._limiter = limiter
        self._limits: dict[str, tuple[QuotaLimit, ...]] = {}
        self._limit = NamespaceLimit(Kind.QUOTAS.limit, lambda _, uid: self._drop(uid))
        self._in_namespace: dict[str, dict[str, None]] = {}
        self._outdated: set[str] = set()
        self._changed: set[str] = set()
        self._derived_from = (0, 0)
        self._shown_as: Mapping[TierTenant, TierTenant] = {}
        self._uses: dict[str, dict[TierTenant, QuotaUse]] = {}
        """Uses by namespace, with complete tiers and tenants."""
        self._sums: Mapping[TierTenant, QuotaUse] = {}

    def seen(self, found: Object, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.seen`."""
        if not isinstance(found, ResourceQuota):
            return
        meta = found.metadata
        stated = quota_limits(meta.namespace, meta.name, found.spec, found.status, rules=self._rules)
        limits = tuple(islice(stated, MOST_LIMITS))
        if invalid := [each.invalid for each in limits if each.invalid]:
            raise MalformedObject(meta.uid, f"quota {meta.namespace}/{meta.name}: {invalid[0]}")
        if limits == self._limits.get(meta.uid, ()):
            return
        self._drop(meta.uid)
        if limits and is_short(found.spec) and self._limit.put(meta.namespace, meta.uid):
            self._limits[meta.uid] = limits
            self._in_namespace.setdefault(meta.namespace, {})[meta.uid] = None
            self._outdated.add(meta.namespace)
            self._changed.add(meta.namespace)

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self._drop(uid)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self._limits.keys() - {*uids}:
            self.gone(uid, at_us=at_us)

    def read(self) -> Mapping[TierTenant, QuotaUse]:
        """The sums by exported tier and tenant; only what changed is computed again."""
        derived_from = (self._namespaces.changes, self._classes.changes)
        if derived_from != self._derived_from:
            self._derived_from = derived_from
            self._outdated.update(self._in_namespace)
        for namespace in self._outdated:
            self._uses[namespace] = dict(self._of_namespace(namespace))
        shown = self._shown()
        if self._outdated or shown != self._shown_as:
            self._shown_as = shown
            self._sums = _sums((shown[key], use) for uses in self._uses.values() for key, use in uses.items())
        self._outdated.clear()
        return self._sums

    def limit(self, namespace: str, name: str, resource: str) -> QuotaLimit | None:
        """The limit of a quota for a GPU resource, if it exists."""
        limits = (each for uid in self._in_namespace.get(namespace, ()) for each in self._limits[uid])
        return next((each for each in limits if (each.name, each.resource) == (name, resource)), None)

    def drain_changed(self) -> set[str]:
        """The namespaces whose quotas have changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def shown_as(self, key: TierTenant) -> TierTenant | None:
        """How the tier and tenant of a quota are exported, as of the last `read`; None without such a quota."""
        return self._shown_as.get(key)

    def tier_of(self, limit: QuotaLimit) -> str:
        """The tier of all pods that the quota counts, if it counts pods by class."""
        if not limit.terms or not limit.is_by_class:
            return ANY
        named = (name for term in limit.terms for name in term.values or ())
        counted = {name for name in (*named, *self._classes.known, "") if limit.counts(name)}
        tiers = {tier_of(name, self._classes.value_of(name), self._rules) for name in counted}
        return tiers.pop() if len(tiers) == 1 else ANY

    def _drop(self, uid: str) -> None:
        for namespace in {each.namespace for each in self._limits.pop(uid, ())}:
            self._outdated.add(namespace)
            self._changed.add(namespace)
            self._limit.remove(namespace, uid)
            self._in_namespace[namespace].pop(uid)
            if not self._in_namespace[namespace]:
                del self._in_namespace[namespace]

    def _of_namespace(self, namespace: str) -> Iterator[tuple[TierTenant, QuotaUse]]:
        """For each tier the sum over resources; of several quotas for the same pods, the smallest one limits them."""
        smallest: dict[tuple[str, str], QuotaLimit] = {}
        for uid in self._in_namespace.get(namespace, ()):
            for each in self._limits[uid]:
                key = self.tier_of(each), each.resource
                if key not in smallest or each.hard < smallest[key].hard:
                    smallest[key] = each
        tenant = self._namespaces.tenant_in(namespace) if smallest else ""
        uses = (((tier, tenant), self._use(each)) for (tier, _), each in smallest.items())
        yield from _sums(uses).items()

    def _shown(self) -> dict[TierTenant, TierTenant]:
        """How each tier and tenant is exported; a quota admits none, since it may never be used."""
        keys = {key for uses in self._uses.values() for key in uses}
        tiers = self._limiter.foreseen("tier", sorted({tier for tier, _ in keys} - {ANY})) | {ANY: ANY}
        tenants = self._limiter.foreseen("tenant", sorted({tenant for _, tenant in keys}))
        return {(tier, tenant): (tiers[tier], tenants[tenant]) for tier, tenant in keys}

    def _use(self, limit: QuotaLimit) -> QuotaUse:
        used = None if limit.used is None else self._gpus(limit.resource, limit.used)
        return QuotaUse(self._gpus(limit.resource, limit.hard), used)

    def _gpus(self, resource: str, units: int) -> int:
        """µGPU of the units; a quota has no node that says how its GPUs are shared."""
        return sum(quantity for _, quantity in quantities_on(((resource, units),), (), self._rules))


def _sums(uses: Iterable[tuple[TierTenant, QuotaUse]]) -> dict[TierTenant, QuotaUse]:
    found = defaultdict[TierTenant, list[QuotaUse]](list)
    for key, use in uses:
        found[key].append(use)
    return {key: _sum(each) for key, each in found.items()}


def _sum(uses: Collection[QuotaUse]) -> QuotaUse:
    """The use is unknown if one of them is."""
    used = [each.used for each in uses if each.used is not None]
    return QuotaUse(sum(each.hard for each in uses), sum(used) if len(used) == len(uses) else None)


class AdmissionQuotas(StatePart[Struct]):
    """The existing quotas by UID, those that limit nothing of pods left out. They are listed again at each start."""

    name = "admission-quota"
    kinds = (Kind.QUOTAS,)

    def __init__(self) -> None:
        self.known: dict[str, PodQuota] = {}
        self.is_listed = False
        self._limit = NamespaceLimit(Kind.QUOTAS.limit, self._drop)

    @property
    def limit_overflow(self) -> LimitOverflow:
        """See `StatePart.limit_overflow`."""
        return self._limit.overflow

    def seen(self, found: Object, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.seen`."""
        if not isinstance(found, ResourceQuota):
            return
        quota, uid = quota_of(found), found.metadata.uid
        if not quota.hard:
            self._drop(quota.namespace, uid)
        elif not is_short(found.spec):
            self._limit.refuse(quota.namespace)
            self._drop(quota.namespace, uid)
        elif self._limit.put(quota.namespace, uid):
            self.known[uid] = quota

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        if known := self.known.get(uid):
            self._drop(known.namespace, uid)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        self.is_listed = True
        for uid in self.known.keys() - {*uids}:
            self.gone(uid, at_us=at_us)

    def _drop(self, namespace: str, uid: str) -> None:
        self._limit.remove(namespace, uid)
        self.known.pop(uid, None)
