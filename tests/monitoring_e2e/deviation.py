"""The allowed and actual deviation of dashboards from the ledger.

`increase()` takes the growth from the first to the last sample in the window and extrapolates it to the window's edges
at the mean rate. Each series starts inside the window at 0, so nothing is extrapolated before it. The last sample is at
most one interval old, so a panel's error is at most the number of GPUs of its group times the interval; half an
interval more allows for late scrapes. Counters may also exceed the ledger by their exported overcount, because API
times are whole seconds and in the past.

A new series is less exact: its second sample includes everything before the first, so its mean rate is too high at
first. No window ends within a few scrapes after that, see `Scene.steady`.
"""

import logging
from typing import Final

from hack.pictures.variables import Window
from hack.prometheus import Prometheus
from tests.monitoring_e2e.day import SCRAPE_S
from tests.monitoring_e2e.ledger import Sums

logger = logging.getLogger(__name__)

SLACK_S: Final = 1.5 * SCRAPE_S
_OVERCOUNT: Final = 'sum(gputally_overcount_gpu_seconds{counter="allocated"})'


def overcount_at_end(api: Prometheus, window: Window) -> float:
    """The overcount in GPU-seconds at the end of the window."""
    return api.query(_OVERCOUNT, at=window.end).value


def deviations(
    shown: dict[str, float], ledger: dict[str, Sums], *, what: str, overcount: float, gap_s: float = 0
) -> list[str]:
    """The groups whose `shown` GPU-seconds deviate too much; `gap_s` is the time without scrapes."""
    return [
        f"{what} of {name}: {shown.get(name, 0):.3f} instead of {sums.gpu_seconds:.3f}"
        for name, sums in ledger.items()
        if not -sums.most_gpus * (SLACK_S + gap_s)
        <= _deviation(what, name, shown.get(name, 0), sums)
        <= sums.most_gpus * SLACK_S + overcount
    ]


def _deviation(what: str, name: str, shown: float, sums: Sums) -> float:
    deviation = shown - sums.gpu_seconds
    logger.info("%s of %s: %.3f, in the ledger %.3f GPU-s: %+.3f", what, name, shown, sums.gpu_seconds, deviation)
    return deviation
