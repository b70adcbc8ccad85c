"""Checks the tiers of a price book's multipliers against the tier rules of the configuration."""

from gputally.accounting.prices.price_book import PriceBook
from gputally.accounting.terms.template import placeholders
from gputally.accounting.terms.tier import NO_TIER
from gputally.config.fields import child_path
from gputally.config.values import unknown
from gputally.errors import Problem
from gputally.model.rules import Rules


def undefined_tiers(book: PriceBook, rules: Rules, *, file: str) -> tuple[Problem, ...]:
    """A problem of `file` for each multiplier whose tier no rule defines.

    No problems if a rule derives tiers from PriorityClass names, which only the cluster knows.
    """
    if any(placeholders(rule.tier) for rule in rules.tiers):
        return ()
    defined = (*dict.fromkeys(rule.tier for rule in rules.tiers), NO_TIER)
    undefined = (tier for tier, _ in book.tiers if tier not in defined)
    return tuple(
        Problem(file, child_path("tiers", tier), f"no tier rule has it: {unknown(tier, defined, example=defined[0])}")
        for tier in undefined
    )
