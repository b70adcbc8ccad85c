from collections.abc import Sequence

import pytest

from hack.pictures.dashboard import Variable
from hack.pictures.variables import Window, chosen, expand, nice, seconds, written
from tests.pictures.scripted import END, START

WINDOW = Window(START, END, step=120, scrape=30)
VALUES: dict[str, Sequence[str]] = {"cluster": [".*"], "tier": ["high", "low"]}


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ('x{cluster=~"$cluster"}', 'x{cluster=~".*"}'),
        ('x{tier=~"$tier"}', 'x{tier=~"(high|low)"}'),
        ("rate(x[$__rate_interval])", "rate(x[150s])"),
        ("x[$__range:5m] + x[$__interval]", "x[1d:5m] + x[2m]"),
        ("rate(x[$__rate_interval]) * $__interval_ms / 1000", "rate(x[150s]) * 120000 / 1000"),
        ('label_replace(x, "a", "$1", "b", "(.*)")', 'label_replace(x, "a", "$1", "b", "(.*)")'),
    ],
)
def test_a_query_is_asked_with_its_variables_filled_in(query: str, asked: str) -> None:
    assert expand(query, VALUES, window=WINDOW) == asked


@pytest.mark.parametrize("use", ["$unheard", "${tier}", "${tier:csv}", "[[tier]]", "$__range_s"])
def test_a_variable_that_is_not_known_or_written_otherwise_is_refused(use: str) -> None:
    with pytest.raises(ValueError, match="is no variable, or written in a form that is not known"):
        expand(f'x{{tier=~"{use}"}}', VALUES, window=WINDOW)


def test_the_step_is_a_nice_one_between_pixels_and_scrapes() -> None:
    windows = [Window(START, END).on(pixels) for pixels in (780, 2000, 10_000)]

    assert [(each.step, each.rate_interval) for each in windows] == [(120, 150), (60, 120), (30, 120)]


def test_a_variable_that_nobody_chose_has_its_first_value() -> None:
    variables = [
        Variable("tier", "query", "Tier", all_value=".+"),
        Variable("hour", "custom", "Hour", current={"value": "8"}),
    ]

    assert chosen(variables, {}) == {"tier": [".+"], "hour": ["8"]}
    assert chosen(variables, {"tier": ["high"]}) == {"tier": ["high"], "hour": ["8"]}
    with pytest.raises(ValueError, match=r"\$tier has no value at first"):
        chosen([Variable("tier", "query", "Tier")], {})


def test_durations_are_read_and_written_as_prometheus_does() -> None:
    assert [seconds(text) for text in ("90s", "1h30m", "7d")] == [90, 5400, 604_800]
    assert [written(each) for each in (30, 90, 7200, 86_400)] == ["30s", "90s", "2h", "1d"]
    assert [nice(each) for each in (0.3, 31, 110, 4000, 5e7)] == [1, 60, 120, 7200, 63_072_000]
    with pytest.raises(ValueError, match="'soon' is no duration"):
        seconds("soon")
