"""The section `tiers`: which tier a pod's PriorityClass and priority give."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from gputally.accounting.terms.patterns import placeholders
from gputally.config.fields import Field, Parser, Section, value, values
from gputally.config.overlap import check_reached, subsumes
from gputally.config.values import choice, label_key, pattern, template, tier_name, whole
from gputally.model.rules import SERVING_BY_NAME, TierRule

PRIORITY_CLASS: Final = "priority-class"
"""Each PriorityClass is its own tier: the default without a configuration."""

SERVING: Final[Mapping[str, tuple[str, ...]]] = {
    "inference-training": ("inference-critical", "inference-standard"),
    "four-tier": ("gpu-serving",),
    "three-tier": ("critical",),
    "research": (),
}
"""The tiers of each preset that serve user traffic; without a preset, the tier names decide."""

PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    PRIORITY_CLASS: (),
    # Inference by day, training by night: priorities 10000, 5000, 1000, 500, 100.
    "inference-training": (
        "inference-critical",
        "inference-standard",
        "training-high",
        "training-standard",
        "training-low",
    ),
    # Training, serving, batch, then interactive, which never preempts: priorities 1000, 800, 400, 200.
    "four-tier": ("gpu-training", "gpu-serving", "gpu-batch", "gpu-interactive"),
    # Production inference, scheduled training, and whatever runs on idle GPUs.
    "three-tier": ("critical", "normal", "scavenger"),
    # Many teams with queues: priorities 1000000, 100000, 10000, 1000; development never preempts.
    "research": ("production-retrain", "experiment-high", "experiment-normal", "development"),
}


_PRIORITIES = whole(-(2**31), 2**31 - 1)  # PriorityClass values are 32 bits wide
_OWN_TIER = (TierRule(tier="{class}"),)


class Tiers(NamedTuple):
    """Tier rules in order (the preset's come last), tiers known in advance, and patterns of serving tiers."""

    rules: tuple[TierRule, ...]
    known: tuple[str, ...]
    serving: tuple[str, ...]


def tiers(field: Field) -> Tiers:
    """The parsed section."""
    section = field.section("preset", "rules", "known")
    written = section.read("rules", _rules, ())
    preset = section.read("preset", value(choice(PRESETS)), "" if "rules" in section else PRIORITY_CLASS)
    if preset:
        _check_reached(section, written)
    known = (
        *(rule.tier for rule in written if not placeholders(rule.tier)),
        *PRESETS.get(preset, ()),
        *section.read("known", values(tier_name), ()),
    )
    return Tiers((*written, *_preset_rules(preset)), tuple(dict.fromkeys(known)), _serving(preset))


def _serving(preset: str) -> tuple[str, ...]:
    """Default patterns of the tiers that serve user traffic."""
    named = SERVING.get(preset)
    return () if named == () else (SERVING_BY_NAME, *map(re.escape, named or ()))


def _preset_rules(preset: str) -> tuple[TierRule, ...]:
    if preset == PRIORITY_CLASS:
        return _OWN_TIER
    return tuple(TierRule(tier=name, class_name=re.escape(name)) for name in PRESETS.get(preset, ()))


def _rules(field: Field) -> tuple[TierRule, ...]:
    fields = field.items()
    found = [_rule(entry) for entry in fields]
    for index, rule in enumerate(found[:-1]):
        if fields[index].sound and _matches_all(rule):
            fields[index].refuse("matches every pod, so no later rule is reached; move it to the end")
    check_reached([(entry, rule) for entry, rule in zip(fields, found, strict=True) if entry.sound], _covers)
    return tuple(found)


def _rule(field: Field) -> TierRule:
    section = field.section("tier", "class", "label", "matches", "min_priority", "max_priority")
    class_name = section.read("class", value(pattern), None)
    lowest = section.read("min_priority", value(_PRIORITIES), None)
    highest = section.read("max_priority", value(_PRIORITIES), None)
    if lowest is not None and highest is not None and lowest > highest:
        section["max_priority"].refuse(f"{highest} is below min_priority {lowest}; no pod matches")
    matches = section.read("matches", value(pattern), None)
    if "matches" in section and "label" not in section:
        section["matches"].refuse("needs `label`, the key of the pod label whose value it matches; add it")
    return TierRule(
        tier=_tier(section, class_name, matches),
        class_name=class_name,
        label=section.read("label", value(label_key), ""),
        matches=matches,
        min_priority=lowest,
        max_priority=highest,
    )


def _tier(section: Section, class_name: str | None, matches: str | None) -> str:
    """The template of the tier. Groups are those of `matches` where a rule reads a label, else those of `class`."""
    if ("class" in section and class_name is None) or ("matches" in section and matches is None):
        return ""  # an invalid pattern has no known groups
    reads_label = "label" in section
    names, groups = (("class", "value"), matches) if reads_label else (("class",), class_name)
    remedy = "add the tier's name, or {value}" if reads_label else "add the tier's name, or {class}"
    return section.require("tier", value(_named(template(*names, pattern=groups))), remedy) or ""


def _named(parse: Parser[str]) -> Parser[str]:
    """A parser of tier templates that rejects reserved names."""
    return lambda written: parse(tier_name(written))


def _matches_all(rule: TierRule) -> bool:
    return _covers(rule, TierRule(tier=""))


def _covers(rule: TierRule, later: TierRule) -> bool:
    """Whether `rule` matches every pod that `later` matches."""
    lowest, highest = rule.min_priority, rule.max_priority
    covers_lowest = lowest is None or (later.min_priority is not None and lowest <= later.min_priority)
    covers_highest = highest is None or (later.max_priority is not None and highest >= later.max_priority)
    covers_label = not rule.label or (rule.label == later.label and subsumes(rule.matches, later.matches))
    return covers_lowest and covers_highest and covers_label and subsumes(rule.class_name, later.class_name)


def _check_reached(section: Section, written: Sequence[TierRule]) -> None:
    if "preset" in section and written and section.field.sound and _matches_all(written[-1]):
        section["preset"].refuse(f"is never reached: rules[{len(written) - 1}] matches every pod; remove one of them")
