"""Patterns and templates of the configuration, by which tiers and tenants follow from the values of pods.

Tenants choose the values that are matched, so that matching takes linear time: RE2 has no backreferences and no
lookarounds, which make other engines take exponential time.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gputally.model.rules import SERVING_BY_NAME

Groups = Mapping[str, str]
"""The text of each group, by number and by name; "" for a group without a match."""
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@lru_cache(maxsize=1024)
def compiled(expression: str) -> Any:  # noqa: ANN401 - RE2's package has no types
    """The compiled expression. Raises: ValueError if it is invalid, or needs too much memory."""
    if expression == SERVING_BY_NAME:
        return re.compile(expression)  # ours, and harmless: no need for the memory of RE2
    import re2  # noqa: PLC0415 - 2 MiB, only where somebody has written an expression

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        text = error.args[0]
        raise ValueError(text.decode() if isinstance(text, bytes) else str(text)) from None


@lru_cache(maxsize=8192)
def matched(expression: str, value: str) -> Groups | None:
    """The groups, if the expression matches the whole `value`; otherwise None."""
    match = compiled(expression).fullmatch(value)
    if match is None:
        return None
    numbered = {str(number): text or "" for number, text in enumerate(match.groups(), start=1)}
    return numbered | {name: text or "" for name, text in match.groupdict().items()}


def group_names(expression: str) -> tuple[str, ...]:
    """The numbers and names of its groups."""
    found = compiled(expression)
    return (*map(str, range(1, found.groups + 1)), *found.groupindex)


def placeholders(template: str) -> list[str]:
    """The names in braces, in order: `class` and `1` of `{class}-{1}`."""
    return _PLACEHOLDER.findall(template)


def expanded(template: str, values: Mapping[str, str]) -> str:
    """`template` with its placeholders replaced once: braces inside values stay.

    Raises: LookupError for a placeholder that is not in `values`; the configuration reader rejects these.
    """
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)
