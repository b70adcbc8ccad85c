"""The tiers of a price book's multipliers, against the rules that define the tiers: two files, one language."""

from gputally.accounting.prices.price_book import PriceBook
from gputally.accounting.terms.template import placeholders
from gputally.accounting.terms.tier import NO_TIER
from gputally.config.fields import child_path
from gputally.config.values import unknown
from gputally.errors import Problem
from gputally.model.rules import Rules


def undefined_tiers(book: PriceBook, rules: Rules, *, file: str) -> tuple[Problem, ...]:
    """A problem of `file` for each multiplier of a tier that no rule gives.

    None where a rule makes tiers of PriorityClass names: which there are is the cluster's to say.
    """
    if any(placeholders(rule.tier) for rule in rules.tiers):
        return ()
    defined = (*dict.fromkeys(rule.tier for rule in rules.tiers), NO_TIER)
    wrong = (tier for tier, _ in book.tiers if tier not in defined)
    return tuple(
        Problem(file, child_path("tiers", tier), f"no tier rule has it: {unknown(tier, defined, example=defined[0])}")
        for tier in wrong
    )
