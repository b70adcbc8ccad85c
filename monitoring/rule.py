"""Alerts and recorded series as their files declare them."""

from collections.abc import Mapping

from msgspec import Struct


class Recording(Struct, frozen=True, kw_only=True):
    """A series that Prometheus keeps for dashboards and alerts: `level:metric:operations`, and why it is kept."""

    name: str
    expression: str
    reason: str


class Alert(Struct, frozen=True, kw_only=True):
    """What somebody should be told.

    `$name` in expression and description stands for a value of `alerts/config.yaml`, which also gives severity and
    `for`; `{{ ... }}` is Prometheus' own template. `dashboard` names the board to look at, `panel` the id of its panel
    that shows the cause, and `variables` those of its variables that are set from labels of the alert.
    """

    name: str
    expression: str
    summary: str
    description: str
    dashboard: str
    panel: int | None = None
    variables: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}


class Group(Struct, frozen=True, kw_only=True):
    """Rules of one subject, evaluated one after the other; every `interval`, or as often as Prometheus does."""

    name: str
    recordings: tuple[Recording, ...] = ()
    alerts: tuple[Alert, ...] = ()
    interval: str = ""
