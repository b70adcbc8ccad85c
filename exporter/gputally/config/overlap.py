"""Price rules that can never apply, because an earlier one takes everything they match."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from gputally.accounting.price_book import Criterion, PriceRule, Trait
from gputally.config.fields import Field
from gputally.model.price import Purchase

Entry = tuple[Field, PriceRule]


def check_overlaps(entries: Sequence[Entry]) -> None:
    """Refuse, at the later one of two rules, ids given twice, matches given twice, and rules never reached."""
    for index, later in enumerate(entries):
        for earlier in entries[:index]:
            if text := _overlap(earlier, later[1]):
                later[0].refuse(text)
                break


def _overlap(earlier: Entry, later: PriceRule) -> str:
    field, rule = earlier
    if rule.id == later.id:
        return f"has the id {rule.id!r} of {field.path}; an id names one rule"
    if set(rule.criteria) == set(later.criteria) and set(rule.purchases) == set(later.purchases):
        return f"has the same match and purchase as {field.path}; put all their prices there, under `prices`"
    if _covers(rule, later):
        return f"is never reached: {field.path} takes all it matches; move it before that rule"
    return ""


def _covers(rule: PriceRule, later: PriceRule) -> bool:
    """Whether `rule` takes all that `later` matches, at any time `later` has a price."""
    bought = set(rule.purchases or Purchase) >= set(later.purchases or Purchase)
    in_time = min(p.from_us for p in rule.prices) <= min(p.from_us for p in later.prices)
    return bought and in_time and all(_implied(criterion, later) for criterion in rule.criteria)


def _implied(criterion: Criterion, later: PriceRule) -> bool:
    """Whether whatever `later` matches fits `criterion` too."""
    same = (c for c in later.criteria if (c.trait, c.key) == (criterion.trait, criterion.key))
    return any(all(_takes(criterion, glob) for glob in other.globs) for other in same)


def _takes(criterion: Criterion, glob: str) -> bool:
    """Whether one glob of `criterion` matches all that `glob` does.

    A `*` in the wider glob takes the wildcards of the narrower one along as if they were text; `?` and `[`
    would take them wrongly, and then no answer is better than a wrong one.
    """
    if criterion.trait in (Trait.INSTANCE_TYPE, Trait.GPU_MODEL):
        pairs = [(glob.lower(), wide.lower()) for wide in criterion.globs]
    else:
        pairs = [(glob, wide) for wide in criterion.globs]
    return any(narrow == wide or (_comparable(narrow, wide) and fnmatchcase(narrow, wide)) for narrow, wide in pairs)


def _comparable(narrow: str, wide: str) -> bool:
    return not (any(c in narrow for c in "*?[") and any(c in wide for c in "?["))
