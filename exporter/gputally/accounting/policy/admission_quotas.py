"""What ResourceQuotas limit of pods, whatever the resource, for forecasts of pods."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec import Struct

from gputally.accounting.base.limits import KEPT, Beyond, NamespaceLimit
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.policy.quota_limits import is_short
from gputally.model.kube.meta import Kind, Object
from gputally.model.kube.policy import ResourceQuota
from gputally.placement.quotas import quota_of

if TYPE_CHECKING:
    from gputally.placement.quotas import PodQuota


class AdmissionQuotas(StatePart[Struct]):
    """The existing quotas by UID, those that limit nothing of pods left out. They are listed again at each start."""

    name = "admission-quota"
    kinds = (Kind.QUOTAS,)

    def __init__(self) -> None:
        self.known: dict[str, PodQuota] = {}
        self.is_listed = False
        self._limit = NamespaceLimit(KEPT[Kind.QUOTAS], self._drop)

    @property
    def beyond_limits(self) -> Beyond:
        """See `StatePart.beyond_limits`."""
        return self._limit.beyond

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
