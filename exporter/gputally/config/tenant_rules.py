"""The section `tenants`: where to find a pod's tenant."""

from gputally.config.fields import Field, Parser, Section, value
from gputally.config.overlap import check_reached, subsumes
from gputally.config.template_parser import template
from gputally.config.values import label_key, member, pattern, tenant_name
from gputally.model.rules import TenantRule, TenantSource


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
