"""The section `tenants`: where a pod's tenant is looked for."""

from gputally.config.fields import Field, Section, value
from gputally.config.template import template
from gputally.config.values import member, pattern, text
from gputally.model.rules import TenantRule, TenantSource


def tenants(field: Field) -> tuple[TenantRule, ...]:
    """The rules in their order."""
    return field.section("rules").require("rules", _rules, "write a list of rules") or ()


def _rules(field: Field) -> tuple[TenantRule, ...]:
    fields = field.items()
    found = [_rule(entry) for entry in fields]
    for index, rule in enumerate(found[:-1]):
        if fields[index].sound and rule.source is TenantSource.NAMESPACE and rule.pattern is None:
            fields[index].refuse("takes every namespace, so that no later rule is reached; move it to the end")
    return tuple(found)


def _rule(field: Field) -> TenantRule:
    section = field.section("from", "key", "matches", "tenant")
    matches = section.read("matches", value(pattern), None)
    source = section.require("from", value(member(TenantSource)), f"write one of {', '.join(TenantSource)}")
    readable = "matches" not in section or matches is not None
    return TenantRule(
        source=source or TenantSource.NAMESPACE,
        key=_key(section, source),
        pattern=matches,
        tenant=section.read("tenant", value(template("value", matches)), "{value}") if readable else "",
    )


def _key(section: Section, source: TenantSource | None) -> str:
    """The label or annotation; a namespace's name has no key."""
    if source is None:
        return ""
    if source is TenantSource.NAMESPACE:
        if "key" in section:
            section["key"].refuse("is not for `from: namespace`, which takes its name; remove it")
        return ""
    return section.require("key", value(text), f"write the key of the {source.replace('-', ' ')}") or ""
