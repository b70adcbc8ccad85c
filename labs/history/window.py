"""Some days of a trace from its zero on, and when they were scraped."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final, NamedTuple

from tests.core.manifests import MIDNIGHT_S

DAY_S: Final = 24 * 3600
BLOCK_S: Final = 54 * 3600
"""The longest blocks of a Prometheus that keeps 30 days: of 2 h times powers of 3, the last below a tenth of that."""


class Window(NamedTuple):
    """The first `days` of the trace, scraped every `interval` seconds. Its zero is the midnight of `MIDNIGHT_S`."""

    days: int = 30
    interval: int = 60

    @property
    def seconds(self) -> int:
        return self.days * DAY_S

    @property
    def start_s(self) -> int:
        return MIDNIGHT_S

    @property
    def end_s(self) -> int:
        return MIDNIGHT_S + self.seconds

    @property
    def scrapes(self) -> range:
        """When, in seconds from the start: as a rule Prometheus scrapes between the full minutes."""
        return range(self.interval * 3 // 8, self.seconds, self.interval)

    def blocks(self) -> Iterator[range]:
        """The same scrapes, divided by the block their samples belong to."""
        for _, scrapes in groupby(self.scrapes, key=lambda second: (MIDNIGHT_S + second) // BLOCK_S):
            moments = list(scrapes)
            yield range(moments[0], moments[-1] + 1, self.interval)
