"""A time window at the start of a trace, and its scrape times."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final, NamedTuple

from tests.core.manifests import MIDNIGHT_S

DAY_S: Final = 24 * 3600
BLOCK_S: Final = 54 * 3600
"""The longest block of a Prometheus with 30 days retention: the largest 2 h * 3^n below a tenth of the retention."""


class Window(NamedTuple):
    """The first `days` of the trace, scraped every `interval` seconds. The trace starts at `MIDNIGHT_S`."""

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
        """Scrape times in seconds from the start; Prometheus usually does not scrape at full minutes."""
        return range(self.interval * 3 // 8, self.seconds, self.interval)

    def blocks(self) -> Iterator[range]:
        """The scrapes, grouped by block."""
        for _, scrapes in groupby(self.scrapes, key=lambda second: (MIDNIGHT_S + second) // BLOCK_S):
            moments = list(scrapes)
            yield range(moments[0], moments[-1] + 1, self.interval)
