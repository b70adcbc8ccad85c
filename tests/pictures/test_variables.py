from collections.abc import Sequence

import pytest

from hack.pictures.dashboard import Target, Variable
from hack.pictures.durations import nice, seconds, written
from hack.pictures.variables import Window, chosen, expand, worded
from tests.pictures.scripted import END, START, panel

WINDOW = Window(START, END, step=120, scrape=30)
VALUES: dict[str, Sequence[str]] = {"cluster": [".*"], "tier": ["high", "low"], "node": ["a"]}


@pytest.mark.parametrize(
    ("written_as", "asked"),
    [
        ('x{cluster=~"$cluster"}', 'x{cluster=~".*"}'),
        ('x{tier=~"$tier"}', 'x{tier=~"(high|low)"}'),
        ('x{tier=~"${tier:regex}", node="${node}"}', 'x{tier=~"(high|low)", node="a"}'),
        ('x{tier=~"[[tier:pipe]]", node="[[node]]"}', 'x{tier=~"high|low", node="a"}'),
        ("${tier:csv}", "high,low"),
        ("rate(x[$__rate_interval])", "rate(x[150s])"),
        ("x[$__range] / $__range_s", "x[1d] / 86400"),
        ("x[${__interval}] / $__interval_ms", "x[2m] / 120000"),
        (
            'label_replace(x{a="$unknown"}, "a", "$1", "b", "(.*)")',
            'label_replace(x{a="$unknown"}, "a", "$1", "b", "(.*)")',
        ),
    ],
)
def test_a_query_is_asked_with_its_variables_filled_in(written_as: str, asked: str) -> None:
    assert expand(written_as, VALUES, window=WINDOW) == asked


@pytest.mark.parametrize(("step", "scrape", "interval"), [(120, 30, 150), (30, 30, 120), (60, 15, 75), (15, 60, 240)])
def test_the_rate_interval_holds_four_scrapes_and_reaches_the_point_before(
    step: float, scrape: float, interval: float
) -> None:
    assert Window(START, END, step, scrape).rate_interval == interval


@pytest.mark.parametrize(
    ("width", "minimum", "step", "rate_interval"),
    [
        (780, "", 120, 150),  # 86400 s on 780 pixels are 111 s a pixel
        (2000, "", 60, 120),
        (10_000, "", 30, 120),  # no finer than the scrapes
        (780, "1h", 3600, 14_400),
        (780, "$__interval", 120, 150),
    ],
)
def test_the_step_is_a_nice_one_between_pixels_and_scrapes(
    width: float, minimum: str, step: float, rate_interval: float
) -> None:
    window = Window(START, END).of(panel("timeseries"), Target(interval=minimum), width=width)

    assert (window.step, window.rate_interval) == (step, rate_interval)


def test_a_panel_may_show_another_time_than_its_dashboard() -> None:
    window = Window(START, END).of(panel("timeseries", timeFrom="7d"), width=780)

    assert (window.start, window.end, window.step) == (END - 7 * 86_400, END, 900)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        (Variable(name="v", query="label_values(x, v)", include_all=True, all_value=".+"), ".+"),
        (Variable(name="v", query="label_values(x, v)", current={"value": "eu-1"}), ".*"),
        (Variable(name="v", type="custom", query="USD,EUR"), "USD"),
        (Variable(name="v", type="custom", query="Dollar : USD,Euro : EUR"), "USD"),
        (Variable(name="v", type="custom", query="USD,EUR", current={"value": ["EUR"]}), "EUR"),
        (Variable(name="v", type="custom", query="a,b", include_all=True, current={"value": "$__all"}), ".*"),
        (Variable(name="v", type="textbox", query=".*train.*"), ".*train.*"),
    ],
)
def test_a_variable_that_nobody_chose_has_its_first_value(variable: Variable, value: str) -> None:
    assert chosen([variable], {})["v"] == [value]
    assert chosen([variable], {"v": ["mine"]})["v"] == ["mine"]


def test_a_title_says_all_in_words() -> None:
    assert worded("Tier $tier of ${cluster}, $other", VALUES) == "Tier high + low of All, $other"


def test_durations_are_read_and_written_as_prometheus_does() -> None:
    assert [seconds(text) for text in ("90", "1h30m", "250ms", "7d")] == [90, 5400, 0.25, 604_800]
    assert [written(each) for each in (0.25, 30, 90, 7200, 86_400)] == ["250ms", "30s", "90s", "2h", "1d"]
    assert [nice(each) for each in (0.3, 31, 110, 4000, 5e7)] == [1, 60, 120, 7200, 63_072_000]
    with pytest.raises(ValueError, match="'soon' is no duration"):
        seconds("soon")
