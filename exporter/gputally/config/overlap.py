"""Rules that never apply, because earlier rules match everything they match."""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Final, TypeVar

from msgspec.structs import replace

from gputally.accounting.prices.book import Criterion, PriceRule, Trait
from gputally.accounting.terms.patterns import matched
from gputally.config.fields import Field
from gputally.config.values import a_list_of
from gputally.model.price import Purchase

R = TypeVar("R")
Entry = tuple[Field, PriceRule]
_ANYTHING: Final = (".*", "(.*)", "^.*$")
_LITERAL: Final = re.compile(r"[\w/-]+")
"""An expression without metacharacters, which matches only itself."""


def check_reached(entries: Sequence[tuple[Field, R]], covers: Callable[[R, R], bool]) -> None:
    """Report each rule that an earlier rule `covers` completely."""
    for index, (field, later) in enumerate(entries):
        for earlier, rule in entries[:index]:
            if earlier.sound and covers(rule, later):
                field.refuse(f"is never reached: {earlier.path} matches everything it does; move it before that rule")
                break


def subsumes(expression: str | None, later: str | None) -> bool:
    """Whether an expression certainly matches everything that `later` matches; None matches everything."""
    if expression is None or expression in _ANYTHING or expression == later:
        return True
    return later is not None and bool(_LITERAL.fullmatch(later)) and matched(expression, later) is not None


def check_overlaps(entries: Sequence[Entry]) -> None:
    """Report duplicate ids, duplicate matches and unreachable rules, always at the later of two rules."""
    for index, later in enumerate(entries):
        texts = (_overlap(earlier, later[1]) for earlier in entries[:index])
        if text := next(filter(None, texts), "") or _shadowed(entries[:index], later[1]):
            later[0].refuse(text)


def _shadowed(earlier: Sequence[Entry], later: PriceRule) -> str:
    """The problem if several earlier rules cover `later` together, each for some of its purchase options."""
    found: dict[str, None] = {}
    for option in later.purchases or tuple(Purchase):
        bought = replace(later, purchases=(option,))
        covering = next((field.path for field, rule in earlier if _covers(rule, bought)), None)
        if covering is None:
            return ""
        found[covering] = None
    return f"is never reached: {a_list_of(found)} match everything it does; move it before these rules"


def _overlap(earlier: Entry, later: PriceRule) -> str:
    field, rule = earlier
    if rule.id == later.id:
        return f"has the same id {rule.id!r} as {field.path}; use a unique id"
    if set(rule.criteria) == set(later.criteria) and set(rule.purchases) == set(later.purchases):
        return f"has the same match and purchase as {field.path}; put all their prices there, under `prices`"
    if _covers(rule, later):
        return f"is never reached: {field.path} matches everything it does; move it before that rule"
    return ""


def _covers(rule: PriceRule, later: PriceRule) -> bool:
    """Whether `rule` matches everything that `later` matches, whenever `later` has a price."""
    bought = set(rule.purchases or Purchase) >= set(later.purchases or Purchase)
    in_time = min(p.from_us for p in rule.prices) <= min(p.from_us for p in later.prices)
    return bought and in_time and all(_implied(criterion, later) for criterion in rule.criteria)


def _implied(criterion: Criterion, later: PriceRule) -> bool:
    """Whether everything that `later` matches also matches `criterion`."""
    if criterion.trait is not Trait.LABEL and "*" in criterion.globs:
        return True  # every node has a value
    same = (c for c in later.criteria if (c.trait, c.key) == (criterion.trait, criterion.key))
    return any(all(_matches_all(criterion, glob) for glob in other.globs) for other in same)


def _matches_all(criterion: Criterion, glob: str) -> bool:
    """Whether one glob of `criterion` matches everything that `glob` matches.

    A `*` in the wider glob also matches the wildcards of the narrower glob as text. For `?` and `[` that
    comparison is incorrect, so the result is False.
    """
    if criterion.trait in (Trait.INSTANCE_TYPE, Trait.GPU_MODEL):
        pairs = [(glob.lower(), wide.lower()) for wide in criterion.globs]
    else:
        pairs = [(glob, wide) for wide in criterion.globs]
    return any(narrow == wide or (_comparable(narrow, wide) and fnmatchcase(narrow, wide)) for narrow, wide in pairs)


def _comparable(narrow: str, wide: str) -> bool:
    return not (any(c in narrow for c in "*?[") and any(c in wide for c in "?["))
