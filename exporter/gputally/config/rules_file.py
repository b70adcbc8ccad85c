"""The configuration file. The sections `tiers`, `resources`, `closing` and `budgets` have modules of their own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from gputally.accounting.jobs.checkpoints import interval_of
from gputally.config.budgets import budgets, check_budget_tiers
from gputally.config.closing import closing
from gputally.config.document import digest, load
from gputally.config.fields import Field, Parser, Section, kind_of, value, values
from gputally.config.overlap import check_reached, subsumes
from gputally.config.resources import resources
from gputally.config.tiers import Tiers, tiers
from gputally.config.values import label_key, member, object_name, pattern, template, tenant_name, text, whole
from gputally.model.rules import (
    AgentMarks,
    ChargeCeilings,
    CheckpointRule,
    HamiBasis,
    KaiNames,
    Limits,
    MigBasis,
    Placeholders,
    Rules,
    TenantRule,
    TenantSource,
    TimeLimit,
)
from gputally.model.units import US_PER_DAY, US_PER_SECOND, seconds_of

_STATES = ("pending", "starting")
_SHORTEST_US = 60 * US_PER_SECOND
_LONGEST_US = 30 * US_PER_DAY
CONFIGURATION: Final = "Configuration"
"""The `kind` of these files."""
_LIMIT = whole(1, 100_000)
_MOST_WHAT_IFS = 8
_CEILING = whole(1, 1_000_000)
_SECTIONS: Final = (
    *("kind", "tiers", "serving", "tenants", "resources", "pools", "mig", "hami", "kai", "limits", "waits"),
    *("checkpoints", "placeholders", "what_if_checkpoints", "time_limits", "closing", "budgets"),
)


def tenants(field: Field) -> tuple[TenantRule, ...]:
    """The rules in their order."""
    return field.section("rules").require("rules", _rules, "add a list of rules") or ()


def _rules(field: Field) -> tuple[TenantRule, ...]:
    fields = field.items()
    found = [_rule(entry) for entry in fields]
    for index, rule in enumerate(found[:-1]):
        if fields[index].sound and rule.source is TenantSource.NAMESPACE and rule.pattern is None:
            fields[index].refuse("matches every namespace, so no later rule is reached; move it to the end")
    check_reached([(entry, rule) for entry, rule in zip(fields, found, strict=True) if entry.sound], _covers)
    return tuple(found)


def _covers(rule: TenantRule, later: TenantRule) -> bool:
    """Whether `rule` finds a tenant for every pod for which `later` finds one."""
    return (rule.source, rule.key) == (later.source, later.key) and subsumes(rule.pattern, later.pattern)


def _rule(field: Field) -> TenantRule:
    section = field.section("from", "key", "matches", "tenant")
    matches = section.read("matches", value(pattern), None)
    source = section.require("from", value(member(TenantSource)), f"use one of {', '.join(TenantSource)}")
    readable = "matches" not in section or matches is not None
    return TenantRule(
        source=source or TenantSource.NAMESPACE,
        key=_key(section, source),
        pattern=matches,
        tenant=section.read("tenant", value(_tenant(matches)), "{value}") if readable else "",
    )


def _tenant(matches: str | None) -> Parser[str]:
    parse = template("value", pattern=matches)
    return lambda written: parse(tenant_name(written))


def _key(section: Section, source: TenantSource | None) -> str:
    """The label or annotation; a namespace's name has no key."""
    if source is None:
        return ""
    if source is TenantSource.NAMESPACE:
        if "key" in section:
            section["key"].refuse("is not allowed with `from: namespace`, which uses the namespace's name; remove it")
        return ""
    return section.require("key", value(label_key), f"add the key of the {source.replace('-', ' ')}") or ""


def time_limits(field: Field) -> tuple[TimeLimit, ...]:
    """Limits by tier; the first entry for a tier that has one applies."""
    return tuple(_entries(field))


def _entries(field: Field) -> Iterator[TimeLimit]:
    decided: dict[str, set[str]] = {}
    """The states of which earlier entries have a limit, by tier, "" for all tiers."""
    for entry in field.items():
        section = entry.section("tier", *_STATES)
        tier = section.read("tier", value(text), "")
        limits = {name: found for name in _STATES if (found := section.read(name, value(_duration), 0))}
        if not entry.sound:
            continue
        if not limits:
            entry.refuse("limits nothing; add pending or starting, such as `pending: 6h`")
        for name in limits.keys() & (decided.get(tier, set()) | decided.get("", set())):
            section[name].refuse("never applies, since an earlier entry decides; move it up or remove it")
        decided.setdefault(tier, set()).update(limits)
        yield TimeLimit(tier=tier, pending_us=limits.get("pending"), starting_us=limits.get("starting"))


def _duration(text: str) -> int:
    found_us = (seconds_of(text) or 0) * US_PER_SECOND
    if not _SHORTEST_US <= found_us <= _LONGEST_US:
        raise ValueError(f"{text!r} is not a duration from 1m to 720h; use one such as 10m or 6h")
    return found_us


def read_rules(path: Path) -> Rules:
    """The rules of a configuration file.

    Raises: ConfigError with all problems of the file.
    """
    root = load(path)
    found = rules(root) if kind_of(root, [CONFIGURATION]) else Rules()
    root.raise_problems()
    return found


def default_rules() -> Rules:
    """The rules without a configuration, with their digest."""
    return _with_digest(Rules())


def with_agents(found: Rules, marks: AgentMarks) -> Rules:
    """The rules with `marks` to identify agent pods."""
    return _with_digest(replace(found, agents=marks, digest=""))


def with_watched(found: Rules, resources: tuple[str, ...]) -> Rules:
    """The rules with the optional resources to watch."""
    return replace(found, watched=resources)


def rules(root: Field) -> Rules:
    """The rules of a file; invalid if `root` has problems."""
    section = root.section(*_SECTIONS)
    default = Rules()
    written, built_in = section.read("resources", resources, (default.resources, default.built_in_resources))
    by_tier = section.read("tiers", tiers, Tiers(default.tiers, default.known_tiers, default.serving))
    found = Rules(
        tiers=by_tier.rules,
        known_tiers=by_tier.known,
        serving=section.read("serving", _serving, by_tier.serving),
        tenants=section.read("tenants", tenants, default.tenants),
        resources=written,
        built_in_resources=built_in,
        pool_labels=section.read("pools", _pool_labels, default.pool_labels),
        mig_basis=section.read("mig", _mig_basis, default.mig_basis),
        hami_basis=section.read("hami", _hami_basis, default.hami_basis),
        kai=section.read("kai", _kai, default.kai),
        limits=section.read("limits", _limits, default.limits),
        waits=section.read("waits", _waits, default.waits),
        checkpoints=section.read("checkpoints", _checkpoints, default.checkpoints),
        placeholders=section.read("placeholders", _placeholders, default.placeholders),
        what_if_checkpoints_us=section.read("what_if_checkpoints", _what_ifs, default.what_if_checkpoints_us),
        time_limits=section.read("time_limits", time_limits, default.time_limits),
        closing=section.read("closing", closing, default.closing),
        budgets=section.read("budgets", budgets, default.budgets),
    )
    if found.budgets and section["budgets"].sound:
        check_budget_tiers(section["budgets"], found.budgets, found.tiers)
    if len(by_tier.known) > found.limits.tiers:
        section["tiers"].refuse(
            f"defines {len(by_tier.known)} tiers, but limits.tiers allows {found.limits.tiers}; raise it"
        )
    return _with_digest(found)


def _serving(field: Field) -> tuple[str, ...] | None:
    """Patterns of tier names; an empty list says that no tier serves user traffic."""
    return () if field.is_empty_list else values(pattern)(field)


def _pool_labels(field: Field) -> tuple[str, ...]:
    return field.section("labels").require("labels", values(label_key), "add the node labels that name a pool") or ()


def _mig_basis(field: Field) -> MigBasis | None:
    return field.section("basis").require("basis", value(member(MigBasis)), "use compute or memory")


def _hami_basis(field: Field) -> HamiBasis | None:
    return field.section("basis").require("basis", value(member(HamiBasis)), "use memory, cores or larger")


def _kai(field: Field) -> KaiNames:
    section, default = field.section("scheduler", "reservations"), KaiNames()
    return KaiNames(
        scheduler=section.read("scheduler", value(object_name), default.scheduler),
        reservations=section.read("reservations", value(object_name), default.reservations),
    )


def _checkpoints(field: Field) -> tuple[CheckpointRule, ...]:
    """Intervals by tier; the first entry for a tier applies."""
    return tuple(found for entry in field.items() if (found := _checkpoint(entry)) and entry.sound)


def _checkpoint(field: Field) -> CheckpointRule | None:
    section = field.section("tier", "interval")
    tier = section.read("tier", value(text), "")
    interval_us = section.require("interval", value(_interval), "add how often jobs save a checkpoint, such as 30m")
    return None if interval_us is None else CheckpointRule(tier=tier, interval_us=interval_us)


def _what_ifs(field: Field) -> tuple[int, ...]:
    """Intervals, of which each is a value of a label; an empty list computes none."""
    if field.is_empty_list:
        return ()
    found = values(_interval)(field)
    if len(found) > _MOST_WHAT_IFS:
        field.refuse(f"has {len(found)} intervals; use at most {_MOST_WHAT_IFS}, since each is a label of metrics")
    return tuple(sorted({*found}))


def _interval(text: str) -> int:
    if (interval_us := interval_of(text)) is None:
        raise ValueError(f"{text!r} is not a duration from 1m to 168h; use one such as 10m or 1h30m")
    return interval_us


def _placeholders(field: Field) -> Placeholders:
    section = field.section("tiers", "classes", "images")
    return Placeholders(
        tiers=section.read("tiers", values(pattern), ()),
        classes=section.read("classes", values(pattern), ()),
        images=section.read("images", values(pattern), ()),
    )


def _limits(field: Field) -> Limits:
    default = msgspec.structs.asdict(Limits())
    section = field.section(*default)
    return Limits(**{name: section.read(name, value(_LIMIT), limit) for name, limit in default.items()})


def _waits(field: Field) -> ChargeCeilings:
    default = ChargeCeilings()
    section = field.section("ceiling_gpus", "ceiling_gpus_per_pod")
    return ChargeCeilings(
        gpus=section.read("ceiling_gpus", value(_CEILING), default.gpus),
        gpus_per_pod=section.read("ceiling_gpus_per_pod", value(_CEILING), default.gpus_per_pod),
    )


def _with_digest(found: Rules) -> Rules:
    """The rules with their digest, which excludes what does not affect the classification of pods."""
    plain = replace(found, serving=(), waits=ChargeCeilings(), checkpoints=(), time_limits=(), closing=None, budgets=())
    plain = replace(plain, what_if_checkpoints_us=(), watched=())
    return replace(found, digest=digest(plain))
