"""Pods that use devices only through ResourceClaims (Dynamic Resource Allocation), which are not accounted."""

from collections.abc import Collection, Iterable

from msgspec import Struct

from gputally.accounting.state_part import StatePart
from gputally.model.kube import Kind, Object, Pod
from gputally.model.objects.core_values import ENDED_PHASES
from gputally.model.rules import Rules
from gputally.shares.request import holds_gpu


class ClaimPod(Struct, frozen=True, kw_only=True, gc=False):
    """Only its UID: it is counted, not accounted."""

    uid: str


def is_claim_only(pod: Pod, rules: Rules) -> bool:
    """Whether the pod has ResourceClaims, and requests no GPU resource that is accounted."""
    return bool(pod.spec.resource_claims) and not holds_gpu(pod, rules)


class ClaimPods(StatePart[ClaimPod]):
    """Bound, unfinished pods with claims only. A claim may be for another device than a GPU: claims are not read."""

    name = "claim-pod"
    kinds = (Kind.PODS,)

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._uids: set[str] = set()
        self._changed: set[str] = set()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._uids)

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`; most pods have no claims."""
        if not isinstance(found, Pod) or not is_claim_only(found, self._rules):
            return
        uid = found.metadata.uid
        if not found.spec.node_name or found.status.phase in ENDED_PHASES:
            self.gone(uid, at_us=at_us)
        elif uid not in self._uids:
            self._uids.add(uid)
            self._changed.add(uid)

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`: the pod was deleted or has ended."""
        if uid in self._uids:
            self._uids.discard(uid)
            self._changed.add(uid)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self._uids.difference(uids):
            self.gone(uid, at_us=at_us)

    def restore(self, documents: Iterable[ClaimPod], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.restore`."""
        self._uids = {pod.uid for pod in documents}

    def drain(self) -> dict[str, ClaimPod | None]:
        """See `StatePart.drain`."""
        changed = {uid: ClaimPod(uid=uid) if uid in self._uids else None for uid in self._changed}
        self._changed.clear()
        return changed

    def touch_all(self) -> None:
        """See `StatePart.touch_all`."""
        self._changed |= self._uids
