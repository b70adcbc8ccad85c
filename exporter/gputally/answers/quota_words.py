"""A quota that refuses pods, as a document and in words."""

from gputally.formatting.amounts import bare_amount
from gputally.model.api.pending import QuotaRefusal
from gputally.model.kube.policy import LIMITS, REQUESTS
from gputally.model.needs import CPU, QuotaState, resource_of

_MILLI = 1000


def quota_refusal(quota: QuotaState | None) -> QuotaRefusal | None:
    """The quota in units of people."""
    if quota is None:
        return None
    scale = _MILLI if resource_of(quota.what) == CPU else 1
    return QuotaRefusal(
        name=quota.name,
        resource=_key(quota.what),
        hard=quota.hard / scale,
        used=quota.used / scale,
        requested=quota.needed / scale,
    )


def quota_line(quota: QuotaRefusal) -> str:
    """`training, requests.nvidia.com/gpu: 8 requested for each pod, 0 of 6 used`."""
    requested, used, hard = (_amount(quota.resource, each) for each in (quota.requested, quota.used, quota.hard))
    return f"{quota.name}, {quota.resource}: {requested} requested for each pod, {used} of {hard} used"


def _key(what: str) -> str:
    """The key of the resource in a ResourceQuota, which limits devices by their requests."""
    return f"{REQUESTS}{what}" if "/" in what and not what.startswith((REQUESTS, LIMITS, "count/")) else what


def _amount(key: str, amount: float) -> str:
    resource = resource_of(key)
    return bare_amount(resource, round(amount * _MILLI) if resource == CPU else round(amount))
