"""All sharing schemes, and the quantities that they compute for pods and nodes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from gputally.model.kube.nodes import Node
from gputally.model.rules import ResourceRule, Rules
from gputally.model.units import GPU
from gputally.shares.hami import Hami
from gputally.shares.kai import Kai
from gputally.shares.mig import Mig
from gputally.shares.replica import Replica
from gputally.shares.scheme import GPUS, Labels, ResourceAmount, Scheme
from gputally.shares.whole import Whole

Units = tuple[tuple[str, int], ...]
"""Devices by resource name."""
NodeLabels = tuple[tuple[str, str], ...]
SCHEMES: Final[tuple[Scheme, ...]] = (Whole(), Replica(), Mig(), Hami(), Kai())
BUILT_IN: Final = tuple(
    ResourceRule(pattern=pattern, weighing=scheme.name) for scheme in SCHEMES for pattern in scheme.patterns
)
_BY_NAME: Final[Mapping[str, Scheme]] = {scheme.name: scheme for scheme in SCHEMES}


@lru_cache(maxsize=4096)
def rule_of(resource: str, rules: Rules) -> ResourceRule | None:
    """The first rule whose glob matches the resource; configured rules precede built-in ones. None if it is no GPU."""
    known = (*rules.resources, *(BUILT_IN if rules.built_in_resources else ()))
    return next((rule for rule in known if fnmatchcase(resource, rule.pattern)), None)


def scheme_of(resource: str, rules: Rules) -> Scheme:
    """The scheme that weighs a resource by its rule; it must be a GPU resource. Raises: KeyError if it is none."""
    rule = rule_of(resource, rules)
    if rule is None:
        raise KeyError(resource)
    return _BY_NAME[rule.weighing]


def describes(resource: str, rules: Rules) -> bool:
    """Whether the resource is not a device, but defines how much of its devices a pod has."""
    rule = rule_of(resource, rules)
    return rule is not None and _BY_NAME[rule.weighing].describes


@lru_cache(maxsize=1024)
def is_read(key: str) -> bool:
    """Whether quantities depend on the label `key` of a node."""
    return any(scheme.reads(key) for scheme in SCHEMES)


@lru_cache(maxsize=4096)
def sharing_of(labels: NodeLabels) -> NodeLabels:
    """The node's labels that quantities depend on; nodes with the same ones yield the same quantities."""
    return tuple([(key, value) for key, value in labels if is_read(key)])


def labels_of(node: Node) -> Labels:
    """The labels of a node, and the properties of its GPUs in its annotations."""
    labels = node.metadata.labels or {}
    for scheme in SCHEMES if node.metadata.annotations else ():
        labels = {**labels, **scheme.labels(node.metadata.annotations or {})}
    return labels


@lru_cache(maxsize=4096)
def quantities_on(units: Units, node: NodeLabels, rules: Rules) -> Units:
    """µGPU by resource of a pod that requests these `units`, on a node with these labels."""
    labels = dict(node)
    by_scheme = _by_scheme(units, labels, rules)
    found = (pair for scheme, requested in by_scheme.items() for pair in scheme.quantities(requested, labels, rules))
    return tuple(sorted(found))


def covered(units: Iterable[tuple[str, int]], node: NodeLabels, rules: Rules) -> int:
    """Total µGPU of the units that a node offers."""
    labels = dict(node)
    by_scheme = _by_scheme(units, labels, rules)
    offers = (pair for scheme, offered in by_scheme.items() for pair in scheme.offers(offered, labels, rules))
    return sum(quantity for _, quantity in offers)


@lru_cache(maxsize=4096)
def requested(units: Units, rules: Rules) -> int:
    """Total µGPU of a pod without a node, weighed as on one without GPU sharing."""
    return covered(units, (), rules)


def _by_scheme(
    units: Iterable[tuple[str, int]], node: Labels, rules: Rules
) -> Mapping[Scheme, Sequence[ResourceAmount]]:
    known = [ResourceAmount(name, amount, rule) for name, amount in units if (rule := rule_of(name, rules))]
    governing = next((scheme for scheme in SCHEMES if scheme.governs(known, node)), None)
    found = defaultdict[Scheme, list[ResourceAmount]](list)
    for each in known:
        scheme = _BY_NAME[each.rule.weighing]
        if governing and each.resource == GPUS:
            scheme = governing
        if scheme is governing or not scheme.describes:
            found[scheme].append(each)
    return found


def divided(units: Iterable[tuple[str, int]], node: NodeLabels, rules: Rules) -> bool:
    """Whether any offered unit is a part of a GPU."""
    return any(covered([(resource, 1)], node, rules) % GPU for resource, amount in units if amount)
