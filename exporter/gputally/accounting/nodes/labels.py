"""The relevant labels of a node, and how long they stay in effect.

Labels are not constant: GPU labels of a new node appear a minute after its first pods, and disappear while the software
that writes them restarts. The GPUs stay the same.
"""

from collections.abc import Mapping
from functools import lru_cache

from gputally.accounting.base.compact import shared
from gputally.accounting.facts import gpu_model
from gputally.accounting.nodes import purchase
from gputally.model.node_record import LostLabel, NodeRecord
from gputally.model.rules import Rules
from gputally.model.units import US_PER_HOUR
from gputally.shares.label_conflicts import COUNTS
from gputally.shares.schemes import is_read

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
OUTLIVE_US = US_PER_HOUR
"""How long the value of a discovered label holds after the label has gone: longer than any restart or upgrade of what
writes it takes."""
_DISCOVERED = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "feature.node.kubernetes.io/", "hami.io/")
"""Prefixes of what software on the node finds out. Node Feature Discovery removes such labels whenever the pod that
found them goes. Anything else is removed by somebody on purpose, and counts at once.

Source: kubernetes-sigs/node-feature-discovery#1491, #1817.
"""
_GIVEN = (
    *_DISCOVERED,
    INSTANCE_TYPE,
    "cloud.google.com/",
    "eks.amazonaws.com/",
    "karpenter.azure.com/",
    "karpenter.k8s.aws/",
    "karpenter.sh/",
    "kubernetes.azure.com/",
)
"""Prefixes of labels that software sets for a new node, sometimes late. An operator may add any other label on any day,
and it counts from then on.
"""
_ALWAYS = frozenset({INSTANCE_TYPE, *COUNTS, *gpu_model.LABELS, *purchase.LABELS})
"""Keys that are looked at whatever the configuration says."""
First = Mapping[str, tuple[int, str]]
"""Labels that were reported for the first time, by key: the time from which each applies, and its value."""
_NEVER_US = 1 << 62
_INVALID = "-MIG-INVALID"
"""What GPU Feature Discovery appends to the product while slices are cut anew, with a count, memory and replicas of 0.

Source: NVIDIA/k8s-device-plugin internal/lm/mig-strategy.go, newInvalidMigStrategyLabeler.
"""


def is_discovered(key: str) -> bool:
    """Whether software on the node writes the label, and removes it when it restarts."""
    return key.startswith(_DISCOVERED)


def relevant(labels: Mapping[str, str], rules: Rules, price_labels: frozenset[str]) -> dict[str, str]:
    """The `labels` of a node that any fact may depend on, in a fixed order."""
    found = _relevant_of(tuple(labels), rules.pool_labels, price_labels)
    if any(labels.get(key, "").endswith(_INVALID) for key in gpu_model.LABELS):
        found = tuple(key for key in found if not key.startswith("nvidia.com/gpu."))
    return {key: labels[key] for key in found}


@lru_cache(maxsize=1024)
def _relevant_of(keys: tuple[str, ...], pool_labels: tuple[str, ...], price_labels: frozenset[str]) -> tuple[str, ...]:
    """In alphabetical order; most nodes have the same keys."""
    return tuple(sorted([key for key in keys if key in pool_labels or key in price_labels or _is_always(key)]))


def lost(record: NodeRecord, present: Mapping[str, str], *, at_us: int) -> tuple[LostLabel, ...]:
    """The labels that the node once had and that are not `present` at `at_us`."""
    known = {each.key: each for each in record.lost}
    for key, value in _latest(record):
        known.setdefault(key, LostLabel(key=key, value=value, since_us=at_us))
    return tuple(known[key] for key in sorted(known.keys() - present.keys()))


def looked_at(
    record: NodeRecord, rules: Rules, price_labels: frozenset[str], *, at_us: int
) -> tuple[tuple[str, int], ...]:
    """Since when each configurable key is read; new keys from `at_us` on."""
    since, from_us = dict(record.looked_at), at_us if record.facts else record.created_us
    found = tuple([(key, since.get(key, from_us)) for key in _may_be_late(rules.pool_labels, price_labels)])
    same: tuple[tuple[str, int], ...] = shared(found)
    return same


@lru_cache(maxsize=8)
def _may_be_late(pool_labels: tuple[str, ...], price_labels: frozenset[str]) -> tuple[str, ...]:
    configured = {key for key in (*pool_labels, *price_labels) if key.startswith(_GIVEN) and not _is_always(key)}
    return tuple(sorted(configured))


def first_seen(record: NodeRecord, present: Mapping[str, str]) -> First:
    """The labels in `present` that the node never had before although they were read.

    They apply from the node's creation on. What was posted before the label was read keeps its price.
    """
    if not record.facts:
        return {}
    known = {key for key, _ in _latest(record)} | {each.key for each in record.lost}
    fresh = [key for key in present if key not in known and key.startswith(_GIVEN)]
    looked_at = dict(record.looked_at)
    since = {key: looked_at.get(key, record.created_us if _is_always(key) else None) for key in fresh}
    return {key: (from_us, present[key]) for key, from_us in since.items() if from_us is not None}


def _is_always(key: str) -> bool:
    return key in _ALWAYS or is_read(key)


def lapse_of(label: LostLabel) -> int:
    """When a missing discovered label expires."""
    return label.since_us + OUTLIVE_US


def lasting(lost_labels: tuple[LostLabel, ...], *, at_us: int) -> dict[str, str]:
    """Labels that are missing at `at_us` but still in effect."""
    return {each.key: each.value for each in lost_labels if is_discovered(each.key) and at_us < lapse_of(each)}


def lapses(record: NodeRecord) -> list[int]:
    """The expiry times of missing labels that are still in effect, in order."""
    if not record.lost:  # the usual case
        return []
    held = {key for key, _ in _latest(record)}
    return sorted({lapse_of(each) for each in record.lost if each.key in held})


def lapses_before(record: NodeRecord, us: int) -> bool:
    """Whether a label expires before `us` and this is not accounted yet."""
    return record.gone_us is None and any(at_us < us for at_us in lapses(record))


def inherited(before: NodeRecord, *, born_us: int) -> tuple[LostLabel, ...]:
    """Labels that a re-registered node had `before`; they stay in effect until they return or expire."""
    lost_before = {each.key: each for each in before.lost}
    carried = {key: LostLabel(key=key, value=value, since_us=born_us) for key, value in _latest(before)}
    return tuple(each for _, each in sorted((carried | lost_before).items()))


def is_described(record: NodeRecord) -> bool:
    """Whether software on the node has reported its GPUs."""
    return _are_discovered(_latest(record))


@lru_cache(maxsize=1024)
def _are_discovered(labels: tuple[tuple[str, str], ...]) -> bool:
    return any(is_discovered(key) for key, _ in labels)


def _latest(record: NodeRecord) -> tuple[tuple[str, str], ...]:
    return record.facts[-1][1].labels if record.facts else ()


class Lapses:
    """The next expiry of a missing label, by node."""

    def __init__(self) -> None:
        self.next_us = _NEVER_US
        self._by_uid: dict[str, int] = {}

    def put(self, record: NodeRecord) -> None:
        """Add or update a node; labels of deleted nodes do not expire."""
        instants = lapses(record) if record.gone_us is None else ()
        if instants:
            self._by_uid[record.uid] = instants[0]
        elif self._by_uid.pop(record.uid, None) is None:
            return
        self.next_us = min(self._by_uid.values(), default=_NEVER_US)

    def due(self, upto_us: int) -> list[str]:
        """UIDs of the nodes with a label that has expired by then."""
        return [uid for uid, at_us in self._by_uid.items() if at_us <= upto_us]
