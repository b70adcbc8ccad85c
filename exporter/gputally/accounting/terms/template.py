"""Templates of tiers and tenants: `{name}` is replaced by a value, `{1}` or `{name}` by a group of a pattern."""

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def placeholders(template: str) -> list[str]:
    """The names in braces, in order: `class` and `1` of `{class}-{1}`."""
    return _PLACEHOLDER.findall(template)


def expanded(template: str, values: Mapping[str, str]) -> str:
    """`template` with its placeholders replaced once: braces inside values stay.

    Raises: LookupError for a placeholder that is not in `values`; the configuration reader rejects these.
    """
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)
