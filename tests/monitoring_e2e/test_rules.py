"""Recorded series and alerts, as Prometheus evaluates them over the whole scenario."""

from collections.abc import Iterator

import pytest

from tests.cluster.manifests import Json
from tests.monitoring_e2e.day import Day

pytestmark = pytest.mark.e2e

EXPECTED = {"InferencePodsPending", "HighPreemptionRate", "GputallyGpuXid", "GputallyGpuUncorrectableEcc"}
"""All alerts that the scenario must trigger; no other may be sent."""


LONGEST_INTERVAL_S = 60
"""Groups with a longer one may not be evaluated before the scenario ends; promtool tests their rules."""


def rules(day: Day) -> Iterator[Json]:
    for group in day.rules["groups"]:
        if group["interval"] <= LONGEST_INTERVAL_S:
            yield from group["rules"]


def test_every_rule_can_be_evaluated(day: Day) -> None:
    assert {each["name"]: each.get("lastError") for each in rules(day) if each["health"] != "ok"} == {}


def test_every_recorded_series_exists(day: Day) -> None:
    names = [each["name"] for each in rules(day) if each["type"] == "recording"]

    assert names
    assert [name for name in names if not day.prometheus.query(name, at=day.ended).series] == []


def test_every_annotation_template_can_be_expanded(day: Day) -> None:
    texts = [text for alert in day.alerts["alerts"] for text in alert["annotations"].values()]

    assert texts
    assert [text for text in texts if "error expanding template" in text or "<no value>" in text] == []


def test_only_the_expected_alerts_are_sent(day: Day) -> None:
    assert {name for each in day.notifications for name in each.names} == EXPECTED
