"""Which tiers serve user traffic: their pods page when they wait."""

from collections.abc import Collection
from functools import lru_cache

from gputally.accounting.terms.expression import matched
from gputally.model.rules import SERVING_BY_NAME, Rules


@lru_cache(maxsize=4096)
def serves(tier: str, rules: Rules) -> bool:
    """Whether one of the serving patterns matches the whole name of the tier."""
    return any(matched(pattern, tier) is not None for pattern in rules.serving)


def unmatched(tiers: Collection[str], rules: Rules) -> int:
    """How many configured serving patterns match none of `tiers`; the built-in one may."""
    written = [pattern for pattern in rules.serving if pattern != SERVING_BY_NAME]
    return sum(all(matched(pattern, tier) is None for tier in tiers) for pattern in written)
