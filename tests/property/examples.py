"""How many random histories each property looks at, and how long they are."""

import os

from hypothesis import HealthCheck, settings

LONG = int(os.environ.get("GPUTALLY_EXAMPLES") or 0)
"""As many at least, of some 90 steps instead of 25: a campaign."""
PODS = (12, 30) if LONG else (1, 5)
"""At least and at most, in one history."""


def examples(count: int) -> settings:
    """`count` of them, or as many as the campaign asks for."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return settings(max_examples=max(count, LONG), suppress_health_check=slow)
