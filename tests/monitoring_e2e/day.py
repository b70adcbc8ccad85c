"""The events of a day of scenario S1, and the servers that observed it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from hack.pictures.variables import Window
from hack.prometheus import Prometheus
from tests.behaviour.recorder import Form, Record
from tests.behaviour.test_scenarios import S1_TEAMS
from tests.monitoring_e2e.gpus import ScriptedGpu
from tests.monitoring_e2e.ledger import Ledger
from tests.prometheus.receiver import Notification

SCRAPE_S: Final = 1
NEVER: Final = math.inf
TEAMS: Final = {**S1_TEAMS, "ml-search": "search"}

Group = tuple[str, str]
"""Tier and tenant."""


class Waiting(NamedTuple):
    """The pending pods of a group, their GPUs, and when the first one was created."""

    pods: int
    gpus: int
    since: float


class Succession(NamedTuple):
    """The period in which another aggregator took over."""

    before: float = NEVER
    after: float = NEVER


@dataclass(kw_only=True)
class Day:
    """Times are in s since the epoch: whole, except for notifications; infinite if never reached."""

    prometheus: Prometheus
    by_address: Prometheus
    """The Prometheus that sees each aggregator as a different `instance`."""
    ledger: Ledger
    record: Record
    """Every version of every pod."""
    scripts: Mapping[str, ScriptedGpu]
    """The measured GPUs, by node."""

    began: float = NEVER
    preempted_from: float = NEVER
    """The end of the time when training had all GPUs."""
    large_created: Mapping[Group, float] = field(default_factory=dict)
    """The creation times of pods that fit on no node."""
    waiting: Mapping[Group, Waiting] = field(default_factory=dict)
    """The pending pods in the API at `waiting_at`."""
    waiting_at: float = NEVER
    paged: float = NEVER
    small_until: float = NEVER
    """The end of the time with 8 GPUs."""
    compared_from: float = NEVER
    """The start of the scrapes by the other Prometheus."""
    noticed: Succession = field(default_factory=Succession)
    """Both Prometheus servers continued scraping."""
    unnoticed: Succession = field(default_factory=Succession)
    """The other Prometheus was killed before, so it did not see the old aggregator end."""
    resolved: float = NEVER
    warned: float = NEVER
    """When HighPreemptionRate reached its receiver."""
    ended: float = NEVER
    notifications: Sequence[Notification] = ()
    rules: Any = None
    alerts: Any = None
    """Prometheus' rules and alerts at the end."""

    @property
    def whole(self) -> Window:
        return window(self.began, self.ended)

    @property
    def small(self) -> Window:
        """The time with 8 GPUs."""
        return window(self.began, self.small_until)

    def pods_on(self, node: str) -> list[list[Form]]:
        """All versions of each pod that was bound to the node."""
        return [forms for forms in self.record.forms.values() if forms[-1][1]["spec"].get("nodeName") == node]


def window(start: float, end: float) -> Window:
    """A dashboard's time range, with the scrape interval of these tests."""
    return Window(start, end, scrape=SCRAPE_S)
