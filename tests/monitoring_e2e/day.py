"""What happened in a day of scenario S1, and whom to ask about it."""

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
    """Of a group: how many pods wait, for how many GPUs, and when the first of them was created."""

    pods: int
    gpus: int
    since: float


class Succession(NamedTuple):
    """Another aggregator took over between these instants."""

    before: float = NEVER
    after: float = NEVER


@dataclass(kw_only=True)
class Day:
    """Instants are whole seconds since the epoch but those of notifications; what was never reached is infinite."""

    prometheus: Prometheus
    by_address: Prometheus
    """The Prometheus to which each aggregator is another `instance`."""
    ledger: Ledger
    record: Record
    """Every form of every pod."""
    scripts: Mapping[str, ScriptedGpu]
    """The GPUs that agents measure, by node."""

    began: float = NEVER
    preempted_from: float = NEVER
    """Until then training had all GPUs."""
    large_created: Mapping[Group, float] = field(default_factory=dict)
    """The pods that fit nowhere."""
    waiting: Mapping[Group, Waiting] = field(default_factory=dict)
    """By the API, at `waiting_at`."""
    waiting_at: float = NEVER
    paged: float = NEVER
    small_until: float = NEVER
    """Until then there were 8 GPUs."""
    compared_from: float = NEVER
    """The other Prometheus scraped from then on."""
    noticed: Succession = field(default_factory=Succession)
    """Both Prometheus servers went on scraping."""
    unnoticed: Succession = field(default_factory=Succession)
    """The other Prometheus was killed before, and never saw the old one go."""
    resolved: float = NEVER
    warned: float = NEVER
    """HighPreemptionRate reached its receiver."""
    ended: float = NEVER
    notifications: Sequence[Notification] = ()
    rules: Any = None
    alerts: Any = None
    """As Prometheus had them in the end."""

    @property
    def whole(self) -> Window:
        return window(self.began, self.ended)

    @property
    def small(self) -> Window:
        """Of the time in which there were 8 GPUs."""
        return window(self.began, self.small_until)

    def pods_on(self, node: str) -> list[list[Form]]:
        """All forms of each pod that was bound to the node."""
        return [forms for forms in self.record.forms.values() if forms[-1][1]["spec"].get("nodeName") == node]


def window(start: float, end: float) -> Window:
    """As a dashboard shows it to someone whose Prometheus scrapes as often as ours."""
    return Window(start, end, scrape=SCRAPE_S)
