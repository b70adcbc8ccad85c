"""The section `resources`: which extended resources are GPUs, and how much of a GPU one unit is."""

import re
from fractions import Fraction

from gputally.config.fields import Field, Section, value
from gputally.config.values import flag, member, text
from gputally.model.rules import ResourceRule, Rules, Weighing
from gputally.model.units import GPU

_WEIGHT = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}|/[0-9]{1,9})?")
_MAX_WEIGHT = 1024


def resources(field: Field) -> tuple[ResourceRule, ...]:
    """The rules written, then the built-in ones, unless `defaults: false` drops them."""
    section = field.section("defaults", "rules")
    written = section.read("rules", _rules, ())
    if section.read("defaults", value(flag), default=True):
        return (*written, *Rules().resources)
    if "rules" not in section:
        section["defaults"].refuse("is false, and no rules are written: nothing would be a GPU; write some")
    return written


def _rules(field: Field) -> tuple[ResourceRule, ...]:
    seen: dict[str, str] = {}
    found = []
    for entry in field.items():
        rule = _rule(entry)
        earlier = seen.setdefault(rule.pattern, entry.path)
        if entry.sound and earlier != entry.path:
            entry.refuse(f"has the same pattern as {earlier}, which decides; keep one")
        found.append(rule)
    return tuple(found)


def _rule(field: Field) -> ResourceRule:
    section = field.section("pattern", "weighing", "weight")
    weighing = section.read("weighing", value(member(Weighing)), Weighing.FIXED)
    return ResourceRule(
        pattern=section.require("pattern", value(text), "write a resource name, such as example.com/gpu") or "",
        weighing=weighing,
        weight=_checked_weight(section, weighing),
    )


def _checked_weight(section: Section, weighing: Weighing) -> int:
    if "weight" in section and weighing is not Weighing.FIXED:
        section["weight"].refuse(f"is not for `weighing: {weighing}`, which works it out; remove one of them")
    return section.read("weight", value(weight), GPU)


def weight(written: str) -> int:
    """Micro-GPUs of one unit, written as GPUs: `1`, `0.5` or `1/7`, rounded down."""
    if not _WEIGHT.fullmatch(written) or re.search(r"/0+$", written):
        raise ValueError(f"{written!r} is no share of a GPU; write one such as 1, 0.5 or 1/7")
    micro_gpus = int(Fraction(written) * GPU)
    if not 1 <= micro_gpus <= _MAX_WEIGHT * GPU:
        raise ValueError(f"{written} is out of range; write a share from 0.000001 to {_MAX_WEIGHT} GPUs")
    return micro_gpus
