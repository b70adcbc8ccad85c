"""Templates of tiers and tenants: `{name}` stands for a value found, `{1}` or `{name}` for a group of a pattern."""

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def placeholders(template: str) -> list[str]:
    """The names in braces, in order: `{class}-{1}` has `class` and `1`."""
    return _PLACEHOLDER.findall(template)


def expanded(template: str, values: Mapping[str, str], match: re.Match[str] | None) -> str:
    """`template` with its placeholders replaced, once: braces inside a value stay as they are.

    A group that took no part in the match is empty. Raises: LookupError for a placeholder that is neither
    in `values` nor a group, which the reader of the configuration refuses beforehand.
    """
    return _PLACEHOLDER.sub(lambda found: _value(found[1], values, match), template)


def _value(name: str, values: Mapping[str, str], match: re.Match[str] | None) -> str:
    if name in values:
        return values[name]
    if match is None:
        raise LookupError(f"{{{name}}} stands for nothing")
    return match[int(name) if name.isdecimal() else name] or ""
