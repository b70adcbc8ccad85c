"""Which PodDisruptionBudgets select the pods that end: records of pods have no labels that no rule reads."""

from collections.abc import Collection

from msgspec import Struct

from gputally.accounting.base.state_part import StatePart
from gputally.accounting.policy.disruption_budgets import DisruptionBudgets
from gputally.model.disruptions import Disrupted
from gputally.model.kube.meta import Kind, Object
from gputally.model.kube.pods import ENDED_PHASES, Pod
from gputally.model.pod_record import PodRecord


class CoveredPods(StatePart[Struct]):
    """The UIDs of the budgets that selected a pod when its end or its deletion was first observed, by the pod's UID."""

    name = "covered-pod"
    kinds = (Kind.PODS,)

    def __init__(self, budgets: DisruptionBudgets) -> None:
        self._budgets = budgets
        self._guarded = budgets.in_namespace
        self._selecting: dict[str, tuple[str, ...] | None] = {}

    def seen(self, found: Object, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.seen`; without budgets, or in a namespace without any, a pod costs one look."""
        if not self._guarded or not isinstance(found, Pod) or found.metadata.namespace not in self._guarded:
            return
        if found.metadata.deletion_timestamp is not None or found.status.phase in ENDED_PHASES:
            self.last_seen(found)

    def last_seen(self, pod: Pod) -> None:
        """The last state of a pod that ends or is deleted."""
        meta = pod.metadata
        if meta.uid not in self._selecting and meta.namespace in self._guarded:
            self._selecting[meta.uid] = self._budgets.selecting(meta.namespace, meta.labels or {})

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self._selecting.pop(uid, None)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self._selecting.keys() - {*uids}:
            self.gone(uid, at_us=at_us)

    def violated(self, record: PodRecord, reported: Disrupted, at_us: int) -> bool | None:
        """See `DisruptionBudgets.violated`."""
        return self._budgets.violated(record.namespace, self._selecting.get(record.uid), reported, at_us=at_us)
