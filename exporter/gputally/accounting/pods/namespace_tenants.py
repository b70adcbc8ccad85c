"""Namespace labels and annotations, from which the tenants of pods follow."""

from collections.abc import Collection

from gputally.accounting.base.state_part import StatePart
from gputally.accounting.pods.pods import Pods
from gputally.model.kube.meta import Kind, Namespace, Object


class NamespaceTenants(StatePart[Namespace]):
    """Relisted at each start; `Pods` holds the state."""

    name = "namespace-tenants"
    kinds = (Kind.NAMESPACES,)

    def __init__(self, pods: Pods) -> None:
        self._pods = pods

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        if isinstance(found, Namespace):
            self._pods.namespace_seen(found, at_us=at_us)

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self._pods.namespaces.gone(uid)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self._pods.namespaces.known() - {*uids}:
            self.gone(uid, at_us=at_us)
