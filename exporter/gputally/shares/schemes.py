"""All ways to give out GPUs, and what they make of what pods ask for and nodes offer."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from gputally.model.kube import Node
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
    """The first rule whose glob matches the resource, the configuration's before those built in; None for no GPU."""
    known = (*rules.resources, *(BUILT_IN if rules.built_in_resources else ()))
    return next((rule for rule in known if fnmatchcase(resource, rule.pattern)), None)


def describes(resource: str, rules: Rules) -> bool:
    """Whether the resource is no device, but tells how much of its devices a pod has."""
    rule = rule_of(resource, rules)
    return rule is not None and _BY_NAME[rule.weighing].describes


@lru_cache(maxsize=1024)
def is_read(key: str) -> bool:
    """Whether quantities follow from the label `key` of a node."""
    return any(scheme.reads(key) for scheme in SCHEMES)


@lru_cache(maxsize=4096)
def sharing_of(labels: NodeLabels | None) -> NodeLabels:
    """Those of a node's labels that quantities follow from; all that is told of nodes with these is the same."""
    return tuple([(key, value) for key, value in labels or () if is_read(key)])


def labels_of(node: Node) -> Labels:
    """The labels of a node, and what its annotations say of its GPUs."""
    labels = node.metadata.labels or {}
    for scheme in SCHEMES if node.metadata.annotations else ():
        labels = {**labels, **scheme.labels(node.metadata.annotations or {})}
    return labels


@lru_cache(maxsize=4096)
def quantities_on(units: Units, node: NodeLabels, rules: Rules) -> Units:
    """µGPU by resource of a pod that asks for so many `units`, on a node with such labels."""
    labels = dict(node)
    by_scheme = _by_scheme(units, labels, rules)
    found = (pair for scheme, asked in by_scheme.items() for pair in scheme.quantities(asked, labels, rules))
    return tuple(sorted(found))


def covered(units: Iterable[tuple[str, int]], node: NodeLabels, rules: Rules) -> int:
    """µGPU that all these units come to, which a node offers."""
    labels = dict(node)
    by_scheme = _by_scheme(units, labels, rules)
    offers = (pair for scheme, offered in by_scheme.items() for pair in scheme.offers(offered, labels, rules))
    return sum(quantity for _, quantity in offers)


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
    """Whether any unit offered is a part of a GPU."""
    return any(covered([(resource, 1)], node, rules) % GPU for resource, amount in units if amount)
