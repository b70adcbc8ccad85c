"""What pods with GPUs state about their checkpoints."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from gputally.accounting.base.state_part import KeyedPart
from gputally.accounting.checkpoints.stated_checkpoint import checkpoint_of
from gputally.accounting.checkpoints.work_to_lose import runs_placeholders
from gputally.model.kube.meta import Kind, Object
from gputally.model.kube.pods import Pod
from gputally.model.lost_work import PodCheckpoint, WorkCheckpoint
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules

NOTHING: Final = PodCheckpoint(uid="")


class Checkpoints(KeyedPart[PodCheckpoint]):
    """The statements of existing pods, by UID; `pods` are the records of all that request GPUs.

    A pod that states nothing has no entry. The latest checkpoint that a pod ever stated counts.
    """

    name = "checkpoint"
    kinds = (Kind.PODS,)

    def __init__(self, pods: Mapping[str, PodRecord], rules: Rules) -> None:
        super().__init__()
        self.fresh: set[str] = set()
        """UIDs of pods whose statements changed, until `LostWorkPart` has taken them up."""
        self._pods = pods
        self._rules = rules
        self._knows_images = bool(rules.placeholders.images)

    def of(self, uid: str) -> PodCheckpoint:
        """What the pod states."""
        return self.known.get(uid, NOTHING)

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`; also called with the last state of a deleted pod, as long as its record is there."""
        if not isinstance(found, Pod) or found.metadata.uid not in self._pods:
            return
        uid, is_placeholder = found.metadata.uid, self._knows_images and runs_placeholders(found, self._rules)
        new = checkpoint_of(found, at_us=at_us, is_placeholder=is_placeholder)
        known = self.known.get(uid)
        if new is None and known is None:
            return
        latest = replace(new or PodCheckpoint(uid=uid), stated=_later(known, new))
        if latest != known:
            self._store(uid, latest)
            self.fresh.add(uid)

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self._remove(uid)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self.known.keys() - uids:
            self.gone(uid, at_us=at_us)

    def restore(self, documents: Iterable[PodCheckpoint], *, at_us: int) -> None:
        """See `StatePart.restore`."""
        for each in documents:
            stated = each.stated
            by_now = replace(stated, at_us=min(stated.at_us, at_us)) if stated else None
            self.known[each.uid] = replace(each, stated=by_now)
        self.fresh.update(self.known)


def _later(known: PodCheckpoint | None, new: PodCheckpoint | None) -> WorkCheckpoint | None:
    stated = [each.stated for each in (known, new) if each and each.stated]
    return max(stated, key=lambda each: each.at_us, default=None)
