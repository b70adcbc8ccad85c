"""What ResourceQuotas limit of pods, whatever the resource, for forecasts of pods."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec import Struct

from gputally.accounting.state_part import StatePart
from gputally.model.kube import Kind, Object, ResourceQuota
from gputally.placement.objects.quota_usage import quota_of

if TYPE_CHECKING:
    from gputally.placement.policy.pod_quotas import PodQuota


class AdmissionQuotas(StatePart[Struct]):
    """The existing quotas by UID, those that limit nothing of pods left out. They are listed again at each start."""

    name = "admission-quota"
    kinds = (Kind.QUOTAS,)

    def __init__(self) -> None:
        self.known: dict[str, PodQuota] = {}
        self.is_listed = False

    def seen(self, found: Object, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.seen`."""
        if not isinstance(found, ResourceQuota):
            return
        quota = quota_of(found)
        if quota.hard:
            self.known[found.metadata.uid] = quota
        else:
            self.known.pop(found.metadata.uid, None)

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self.known.pop(uid, None)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        self.is_listed = True
        for uid in self.known.keys() - {*uids}:
            self.gone(uid, at_us=at_us)
