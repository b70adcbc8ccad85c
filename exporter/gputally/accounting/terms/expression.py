"""Regular expressions of the configuration, in linear time: tenants choose the values that they match.

RE2 has no backreferences and no lookarounds, which make other engines take exponential time.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gputally.model.rules import SERVING_BY_NAME

Groups = Mapping[str, str]
"""The text of each group, by number and by name; "" for a group without a match."""


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
