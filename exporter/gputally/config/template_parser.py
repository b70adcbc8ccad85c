"""Templates of tiers and tenants, checked for unknown placeholders."""

from collections.abc import Callable

from gputally.accounting.terms.expression import group_names
from gputally.accounting.terms.template import placeholders
from gputally.config.values import a_list_of, text


def template(*names: str, pattern: str | None) -> Callable[[str], str]:
    """A parser of templates that may contain each `{name}` and the groups of `pattern`."""
    groups = group_names(pattern) if pattern is not None else ()
    known = tuple(f"{{{option}}}" for option in (*names, *groups))

    def parse(value: str) -> str:
        for placeholder in placeholders(text(value)):
            if f"{{{placeholder}}}" not in known:
                raise ValueError(f"{{{placeholder}}} is not a known placeholder; use {a_list_of(known, 'or')}")
        if value.count("{") + value.count("}") != 2 * len(placeholders(value)):
            raise ValueError(f"{value!r} has an unbalanced brace; use {a_list_of(known, 'or')}")
        return value

    return parse
