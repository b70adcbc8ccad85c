"""How long pods of a tier may be pending or starting, before an alert says so."""

from functools import lru_cache
from typing import Final, NamedTuple

from gputally.model.rules import Rules
from gputally.model.units import US_PER_SECOND

PENDING_US: Final = 6 * 3600 * US_PER_SECOND
"""By default. Training may wait overnight; six hours without a GPU deserve a look."""
STARTING_US: Final = 30 * 60 * US_PER_SECOND
"""By default. Images of 50 GB take some minutes to pull."""


class TierLimits(NamedTuple):
    """The limits of a tier, in µs."""

    pending_us: int
    starting_us: int


@lru_cache(maxsize=4096)
def limits_of(tier: str, rules: Rules) -> TierLimits:
    """The first limits that the configuration has for the tier, else the defaults."""
    own = [each for each in rules.time_limits if each.tier in ("", tier)]
    pending_us = next((each.pending_us for each in own if each.pending_us is not None), PENDING_US)
    return TierLimits(pending_us, next((each.starting_us for each in own if each.starting_us is not None), STARTING_US))
