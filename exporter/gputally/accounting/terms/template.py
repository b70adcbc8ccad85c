"""Templates of tiers and tenants: `{name}` stands for a value found, `{1}` or `{name}` for a group of a pattern."""

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def placeholders(template: str) -> list[str]:
    """The names in braces, in order: `{class}-{1}` has `class` and `1`."""
    return _PLACEHOLDER.findall(template)


def expanded(template: str, values: Mapping[str, str]) -> str:
    """`template` with its placeholders replaced, once: braces inside a value stay as they are.

    Raises: LookupError for a placeholder that is not in `values`, which the reader of the configuration refuses
    beforehand.
    """
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)
