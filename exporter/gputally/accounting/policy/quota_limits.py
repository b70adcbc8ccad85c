"""The limits of GPUs in a ResourceQuota, and which pods it counts."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from gputally.accounting.base.limits import SELECTOR_CHARACTERS
from gputally.model.kube.policy import REQUESTS, QuotaSpec, QuotaStatus, ScopeExpression
from gputally.model.rules import Rules
from gputally.placement.quotas import BY_CLASS, matches_class, terms_of
from gputally.shares.request import requested
from gputally.shares.schemes import describes, rule_of

MOST_LIMITS: Final = 64
"""GPU resources of a quota that are read."""


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
