"""The spec and the status of a ResourceQuota."""

from typing import Final

from gputally.model.objects.camel import Camel

REQUESTS: Final = "requests."
"""Quotas of extended resources have this prefix. Source: k8s.io/kubernetes pkg/apis/core/helper/helpers.go."""
LIMITS: Final = "limits."
Quantity = str | int


class ScopeExpression(Camel, frozen=True):
    """A requirement on a scope: `operator` is In, NotIn, Exists or DoesNotExist."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class ScopeSelector(Camel, frozen=True):
    """All requirements hold for the pods that a quota counts."""

    match_expressions: tuple[ScopeExpression, ...] | None = None


class QuotaSpec(Camel, frozen=True):
    """`scopes` is the older form of a selector."""

    hard: dict[str, Quantity] | None = None
    scopes: tuple[str, ...] | None = None
    scope_selector: ScopeSelector | None = None


class QuotaStatus(Camel, frozen=True):
    """What the quota controller counted, and the limits that admission enforces."""

    used: dict[str, Quantity] | None = None
    hard: dict[str, Quantity] | None = None
