from typing import Any

import pytest

from hack.pictures import theme
from hack.pictures.fields import Field
from tests.pictures.scripted import panel

STEPS = [{"color": "green", "value": None}, {"color": "yellow", "value": 50}, {"color": "red", "value": 80}]


def field(name: str = "", *, overrides: list[dict[str, Any]] | None = None, **defaults: object) -> Field:
    return panel("stat", fieldConfig={"defaults": defaults, "overrides": overrides or []}).field_config.of(name)


@pytest.mark.parametrize(
    ("kind", "name", "is_meant"),
    [
        ("byName", "Cost", False),
        ("byName", "Cost USD", True),
        ("byRegexp", r"/\bUSD\b/", True),
        ("byRegexp", "/^U/", False),
    ],
)
def test_an_override_changes_the_fields_that_it_matches(kind: str, name: str, *, is_meant: bool) -> None:
    properties = [{"id": "unit", "value": "currencyUSD"}, {"id": "custom.cellOptions", "value": {"type": "color-text"}}]
    override = {"matcher": {"id": kind, "options": name}, "properties": properties}
    found = field("Cost USD", overrides=[override], unit="short", custom={"lineWidth": 3})

    shown = (found.unit, found.custom.cell_options.type, found.custom.line_width)
    assert shown == (("currencyUSD", "color-text", 3) if is_meant else ("short", "auto", 3))


def test_a_value_has_the_colour_of_the_last_threshold_it_reaches() -> None:
    found = [field(thresholds={"steps": STEPS}).color_of(value) for value in (-1, 49.9, 50, 80)]

    assert found == [theme.NAMED[color] for color in ("green", "green", "yellow", "red")]


def test_series_without_a_colour_of_their_own_get_grafanas_in_order() -> None:
    found = field(color={"mode": "palette-classic"})

    assert [found.color_of(1, place=place) for place in (0, 1, 18)] == ["#73BF69", "#FADE2A", "#73BF69"]
    assert field(color={"mode": "fixed", "fixedColor": "red"}).color_of(1) == theme.NAMED["red"]


def test_a_mapping_replaces_text_and_colour() -> None:
    words = [{"type": "value", "options": {"1": {"text": "yes", "color": "blue"}}}]
    found = field(mappings=words, unit="short")

    assert [found.text(value) for value in (1, 7)] == ["yes", "7"]
    assert [found.color_of(value) for value in (1, 7)] == [theme.NAMED["blue"], theme.NAMED["green"]]
