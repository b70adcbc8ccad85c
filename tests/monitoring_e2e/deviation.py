"""How far a dashboard may be from the ledger, and how far it was.

`increase()` takes the growth from the first to the last sample of the window, and carries it on to the window's edges
at the mean rate. Each of our series begins inside the window, and as 0, before which nothing is added. At the end the
last sample is one interval old at most, so what a panel shows is off by what the GPUs of its group do in one interval:
at most their number, times the interval. Half an interval more allows for scrapes that are not on time. Besides,
counters may be ahead of the ledger by what they say themselves, as API times are whole seconds and tell of a moment
ago.

A series that has just begun is not so well known: its second sample has all that went by before the first, so that its
mean rate is too high at first. No window ends within a few scrapes of that, see `Scene.steady`.
"""

import logging
from typing import Final

from hack.pictures.variables import Window
from hack.prometheus import Prometheus
from tests.monitoring_e2e.day import SCRAPE_S
from tests.monitoring_e2e.ledger import Sums

logger = logging.getLogger(__name__)

SLACK_S: Final = 1.5 * SCRAPE_S
_AHEAD: Final = 'sum(gputally_overcount_gpu_seconds{counter="allocated"})'


def ahead(api: Prometheus, window: Window) -> float:
    """GPU-seconds that the counters were ahead of the truth at its end."""
    return api.query(_AHEAD, at=window.end).value


def beyond(shown: dict[str, float], told: dict[str, Sums], *, what: str, ahead: float, gap_s: float = 0) -> list[str]:
    """The groups whose GPU-seconds `shown` differ too much; `gap_s` is a time that nobody scraped and none counts."""
    return [
        f"{what} of {name}: {shown.get(name, 0):.3f} instead of {sums.gpu_seconds:.3f}"
        for name, sums in told.items()
        if not -sums.most_gpus * (SLACK_S + gap_s)
        <= _off(what, name, shown.get(name, 0), sums)
        <= sums.most_gpus * SLACK_S + ahead
    ]


def _off(what: str, name: str, shown: float, sums: Sums) -> float:
    off = shown - sums.gpu_seconds
    logger.info("%s of %s: %.3f, by the ledger %.3f GPU-s: %+.3f", what, name, shown, sums.gpu_seconds, off)
    return off
