from typing import Any

import pytest

from hack.pictures import theme
from hack.pictures.fields import Field, Thresholds
from hack.pictures.overrides import field_of
from tests.pictures.scripted import panel

STEPS = [{"color": "green", "value": None}, {"color": "yellow", "value": 50}, {"color": "red", "value": 80}]


def field(kind: str = "stat", *names: str, overrides: list[dict[str, Any]] | None = None, **defaults: object) -> Field:
    config = {"defaults": defaults, "overrides": overrides or []}
    return field_of(panel(kind, fieldConfig=config), *names)


@pytest.mark.parametrize(
    ("matcher", "options", "is_meant"),
    [
        ("byName", "Cost", True),
        ("byName", "Value #A", True),
        ("byName", "cost", False),
        ("byRegexp", "/^Co/", True),
        ("byRegexp", "/^co/i", True),
        ("byRegexp", "Co", False),
        ("byRegexp", "Co.*", True),
        ("byNames", {"names": ["Cost"]}, True),
        ("byType", "number", False),
    ],
)
def test_an_override_changes_the_fields_that_it_matches(matcher: str, options: object, *, is_meant: bool) -> None:
    properties = [{"id": "unit", "value": "currencyUSD"}, {"id": "custom.cellOptions", "value": {"type": "color-text"}}]
    override = {"matcher": {"id": matcher, "options": options}, "properties": properties}
    found = field("table", "Cost", "Value #A", overrides=[override], unit="short")

    assert (found.unit, found.custom.cell) == (("currencyUSD", "color-text") if is_meant else ("short", "auto"))


@pytest.mark.parametrize(
    ("value", "color"), [(-1, "green"), (49.9, "green"), (50, "yellow"), (80, "red"), (1e9, "red")]
)
def test_a_value_has_the_colour_of_the_last_threshold_it_reaches(value: float, color: str) -> None:
    assert field(thresholds={"mode": "absolute", "steps": STEPS}).color_of(value) == theme.NAMED[color]


def test_thresholds_in_percent_are_parts_of_the_way_from_min_to_max() -> None:
    found = field(thresholds={"mode": "percentage", "steps": STEPS}, min=100, max=200)

    assert [start for _, start in found.limits([])] == [-float("inf"), 150, 180]


def test_series_without_a_colour_of_their_own_get_grafanas_in_order() -> None:
    found = field("timeseries")

    assert [found.color_of(1, index=index) for index in (0, 1, 18)] == ["#73BF69", "#FADE2A", "#73BF69"]
    assert field("timeseries", color={"mode": "fixed", "fixedColor": "semi-dark-red"}).color_of(1) == "#E02F44"


def test_a_mapping_replaces_text_and_colour() -> None:
    found = field(
        mappings=[
            {"type": "value", "options": {"1": {"text": "healthy", "color": "blue"}}},
            {"type": "range", "options": {"from": 2, "to": 5, "result": {"text": "few"}}},
            {"type": "special", "options": {"match": "nan", "result": {"text": "unknown"}}},
        ],
        unit="short",
    )

    assert [found.text(value) for value in (1, 3, 7, float("nan"))] == ["healthy", "few", "7", "unknown"]
    assert found.color_of(1) == theme.NAMED["blue"]


def test_a_share_fills_its_gauge_at_one_and_other_values_at_the_largest() -> None:
    assert field(unit="percentunit").between([0.2]) == (0, 1)
    assert field(unit="watt").between([100, 300]) == (100, 300)
    assert field(unit="watt", min=0, max=700).between([100]) == (0, 700)


def test_without_thresholds_eighty_is_red_as_in_grafana() -> None:
    assert [step.color for step in Thresholds().steps] == ["green", "red"]
