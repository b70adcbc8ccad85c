"""The labels of pods on nodes, for PodDisruptionBudgets: records of pods have no labels that no rule reads."""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from gputally.accounting.base.state_part import StatePart
from gputally.model.kube.meta import Kind, Object
from gputally.model.kube.pods import ENDED_PHASES, Pod
from gputally.model.observation import ListedSeparately

_DECODER: Final = msgspec.msgpack.Decoder(dict[str, str])


class PodLabels(StatePart[Struct]):
    """The labels of bound pods by UID, encoded: some 300 bytes for each. Nothing unless it `is_on`."""

    name = "pod-labels"
    kinds = (Kind.PODS,)

    def __init__(self, *, is_on: bool) -> None:
        self.is_on = is_on
        self.known: dict[str, bytes] = {}

    def seen(self, found: Object, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.seen`."""
        if not self.is_on or not isinstance(found, Pod) or not found.spec.node_name:
            return
        if found.status.phase in ENDED_PHASES:
            self.known.pop(found.metadata.uid, None)
        else:
            self.known[found.metadata.uid] = msgspec.msgpack.encode(found.metadata.labels or {})

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self.known.pop(uid, None)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self.known.keys() - {*uids}:
            self.gone(uid, at_us=at_us)

    def listed_separately(self, part: ListedSeparately, known: Collection[str]) -> None:
        """Pods were listed beside the watches, which know better about what they have reported: of `known` UIDs."""
        for each in part.objects:
            uid = each.metadata.uid
            if isinstance(each, Pod) and uid in known and uid not in self.known:
                self.seen(each, at_us=part.at_us)


def labels_in(encoded: bytes) -> Mapping[str, str]:
    """The labels."""
    return _DECODER.decode(encoded)
