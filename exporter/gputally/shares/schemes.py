"""All ways to give out GPUs, and what they make of what pods ask for and nodes offer."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from gputally.model.rules import ResourceRule, Rules, Weighing
from gputally.model.units import GPU
from gputally.shares.mig import Mig
from gputally.shares.replica import Replica
from gputally.shares.scheme import Labels, ResourceAmount, Scheme
from gputally.shares.whole import Whole

Units = tuple[tuple[str, int], ...]
"""Devices by resource name."""
NodeLabels = tuple[tuple[str, str], ...]
SCHEMES: Final[tuple[Scheme, ...]] = (Replica(), Mig(), Whole())
BUILT_IN: Final = tuple(rule for scheme in SCHEMES for rule in scheme.resources)
_BY_WEIGHING: Final[Mapping[Weighing, Scheme]] = {scheme.weighing: scheme for scheme in SCHEMES}


@lru_cache(maxsize=4096)
def rule_of(resource: str, rules: Rules) -> ResourceRule | None:
    """The first rule whose glob matches the resource, the configuration's before those built in; None for no GPU."""
    known = (*rules.resources, *(BUILT_IN if rules.built_in_resources else ()))
    return next((rule for rule in known if fnmatchcase(resource, rule.pattern)), None)


@lru_cache(maxsize=1024)
def is_read(key: str) -> bool:
    """Whether quantities follow from the label `key` of a node."""
    return any(scheme.reads(key) for scheme in SCHEMES)


@lru_cache(maxsize=4096)
def sharing_of(labels: NodeLabels | None) -> NodeLabels:
    """Those of a node's labels that quantities follow from; all that is told of nodes with these is the same."""
    return tuple([(key, value) for key, value in labels or () if is_read(key)])


@lru_cache(maxsize=4096)
def quantities_on(units: Units, node: NodeLabels, rules: Rules) -> Units:
    """µGPU by resource of so many device `units` on a node with such labels."""
    by_scheme = defaultdict[Scheme, list[ResourceAmount]](list)
    for resource, amount in units:
        if rule := rule_of(resource, rules):
            by_scheme[_BY_WEIGHING[rule.weighing]].append(ResourceAmount(resource, amount, rule))
    labels: Labels = dict(node)
    found = {
        name: quantity
        for scheme, asked in by_scheme.items()
        for name, quantity in scheme.quantities(asked, labels, rules)
    }
    return tuple((resource, found.get(resource, 0)) for resource, _ in units)


def covered(units: Iterable[tuple[str, int]], node: NodeLabels, rules: Rules) -> int:
    """µGPU that all these units amount to."""
    return sum(quantity for _, quantity in quantities_on(tuple(units), node, rules))


def divided(units: Iterable[tuple[str, int]], node: NodeLabels, rules: Rules) -> bool:
    """Whether any unit offered is a part of a GPU."""
    return any(covered([(resource, 1)], node, rules) % GPU for resource, amount in units if amount)
