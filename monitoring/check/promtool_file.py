"""Unit tests of rules as promtool reads them.

Source: Prometheus docs configuration/unit_testing_rules.md.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import promql_parser as promql
import yaml
from msgspec import Struct


class Expected(Struct, frozen=True):
    """An alert that should fire, with its labels and annotations."""

    exp_labels: dict[str, Any] = {}
    exp_annotations: dict[str, Any] = {}


class Look(Struct, frozen=True):
    """What an alert should be doing at some time."""

    eval_time: str | int
    alertname: str
    exp_alerts: list[Expected] | None = None


class Sample(Struct, frozen=True):
    """A series of an expected answer."""

    labels: str = ""


class Question(Struct, frozen=True):
    """A query, and what it should answer at some time."""

    eval_time: str | int
    expr: str
    exp_samples: list[Sample] | None = None

    def shows_firing(self, alert: str) -> bool:
        """Whether it expects the series that Prometheus keeps of alerts that fire."""
        text = " ".join((self.expr, *(each.labels for each in self.exp_samples or [])))
        wanted = ("ALERTS", f'alertname="{alert}"', 'alertstate="firing"')
        return bool(self.exp_samples) and all(each in text for each in wanted)


class Input(Struct, frozen=True):
    """A series that is fed."""

    series: str


class Test(Struct, frozen=True):
    """Series over time, and what they should lead to."""

    name: str = ""
    input_series: list[Input] = []
    alert_rule_test: list[Look] = []
    promql_expr_test: list[Question] = []

    def looks(self, alert: str) -> list[Look]:
        """Those at that alert."""
        return [each for each in self.alert_rule_test if each.alertname == alert]

    def firing(self, alert: str) -> list[timedelta]:
        """When it should fire."""
        looks = (each.eval_time for each in self.looks(alert) if each.exp_alerts)
        questions = (each.eval_time for each in self.promql_expr_test if each.shows_firing(alert))
        return [since_start(each) for each in (*looks, *questions)]

    def silent(self, alert: str) -> list[timedelta]:
        """When it should not."""
        return [since_start(each.eval_time) for each in self.looks(alert) if not each.exp_alerts]


class TestFile(Struct, frozen=True):
    """What `promtool test rules` reads."""

    tests: list[Test] = []


def read(path: Path) -> list[Test]:
    """The tests. Raises: msgspec.MsgspecError, yaml.YAMLError."""
    return msgspec.convert(yaml.safe_load(path.read_bytes()), TestFile).tests


def since_start(time: str | int) -> timedelta:
    """Of a duration as Prometheus writes it, or 0."""
    return promql.parse_duration(str(time)) if str(time) != "0" else timedelta()
