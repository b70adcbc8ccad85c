"""The section `resources`: which extended resources are GPUs, and how much of a GPU one unit is."""

import re
from fnmatch import fnmatchcase
from fractions import Fraction

from gputally.config.fields import Field, Section, value
from gputally.config.overlap import check_reached
from gputally.config.values import a_list_of, choice, flag
from gputally.model.rules import FIXED, ResourceRule
from gputally.model.units import GPU
from gputally.shares.schemes import BUILT_IN, SCHEMES

_WEIGHT = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}|/[0-9]{1,9})?")
_MAX_WEIGHT = 1024
_WEIGHINGS = tuple(scheme.name for scheme in SCHEMES if scheme.is_configurable)
_NATIVE = ("kubernetes.io/gpu", "storage.kubernetes.io/gpu", "requests.nvidia.com/gpu")
"""Names in Kubernetes' own domains, or of quotas: never extended resources."""
_NO_RESOURCE = re.compile(r"[^A-Za-z0-9._/*?\[\]!-]")


def resources(field: Field) -> tuple[tuple[ResourceRule, ...], bool]:
    """The configured rules, and whether the built-in rules apply too; `defaults: false` disables them."""
    section = field.section("defaults", "rules")
    written = section.read("rules", _rules, ())
    if section.read("defaults", value(flag), default=True):
        _check_built_in(section, written)
        return written, True
    if "rules" not in section:
        section["defaults"].refuse("is false and there are no rules: no resource would be a GPU; add rules")
    return written, False


def _rules(field: Field) -> tuple[ResourceRule, ...]:
    seen: dict[str, str] = {}
    found = []
    for entry in field.items():
        rule = _rule(entry)
        earlier = seen.setdefault(rule.pattern, entry.path)
        if entry.sound and earlier != entry.path:
            entry.refuse(f"has the same pattern as {earlier}, which applies; keep one")
        found.append((entry, rule))
    check_reached([(entry, rule) for entry, rule in found if entry.sound], _covers)
    return tuple(rule for _, rule in found)


def _covers(rule: ResourceRule, later: ResourceRule) -> bool:
    """Whether the glob of `rule` matches everything that `later` matches, whose wildcards count as text."""
    return rule.pattern != later.pattern and "[" not in later.pattern and fnmatchcase(later.pattern, rule.pattern)


def _check_built_in(section: Section, written: tuple[ResourceRule, ...]) -> None:
    """Report a pattern that is wider than a built-in one: it would weigh some of the resources incorrectly."""
    for index, rule in enumerate(written):
        others = [built_in.pattern for built_in in BUILT_IN if _covers(rule, built_in)]
        if others:
            text = f"also matches {a_list_of(others)}, built in with other weights; narrow it, or set `defaults: false`"
            section["rules"].items()[index].refuse(text)


def _rule(field: Field) -> ResourceRule:
    section = field.section("pattern", "weighing", "weight")
    weighing = section.read("weighing", value(choice(_WEIGHINGS)), FIXED)
    return ResourceRule(
        pattern=section.require("pattern", value(resource_glob), "add a resource name, such as example.com/gpu") or "",
        weighing=weighing,
        weight=_checked_weight(section, weighing),
    )


def resource_glob(value: str) -> str:
    """A glob of extended resources in a vendor's domain.

    Source: k8s.io/kubernetes pkg/apis/core/v1/helper/helpers.go, IsExtendedResourceName.
    """
    domain, slash, _ = value.partition("/")
    if not slash or not re.search(r"[a-z0-9]", domain) or any(fnmatchcase(name, value) for name in _NATIVE):
        raise ValueError(
            f"{value!r} matches resources that are not GPUs; "
            "use the vendor's domain and a name, such as example.com/gpu"
        )
    if wrong := _NO_RESOURCE.findall(value):
        raise ValueError(f"{value!r} matches no resource: names cannot contain {wrong[0]!r}; use the name on the node")
    return value


def _checked_weight(section: Section, weighing: str) -> int:
    if "weight" in section and weighing != FIXED:
        section["weight"].refuse(f"is not allowed with `weighing: {weighing}`, which computes it; remove one of them")
    return section.read("weight", value(weight), GPU)


def weight(written: str) -> int:
    """Micro-GPUs of one unit, written as GPUs: `1`, `0.5` or `1/7`, rounded down."""
    if not _WEIGHT.fullmatch(written) or re.search(r"/0+$", written):
        raise ValueError(f"{written!r} is not a share of a GPU; use one such as 1, 0.5 or 1/7")
    micro_gpus = int(Fraction(written) * GPU)
    if not 1 <= micro_gpus <= _MAX_WEIGHT * GPU:
        raise ValueError(f"{written} is out of range; use a share from 0.000001 to {_MAX_WEIGHT} GPUs")
    return micro_gpus
