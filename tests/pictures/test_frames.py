import pytest

from hack.pictures.frames import Filled, Frame, run, series_name
from hack.pictures.overtime import buckets, stacked, states
from hack.pictures.variables import Window
from hack.prometheus import Series
from tests.pictures.scripted import END, START, ScriptedPrometheus, panel, series, target

WINDOW = Window(START + 7, END + 7)


def filled(kind: str, *found: Series, **more: object) -> Filled:
    shown = panel(kind, target("q"), **more)
    return Filled(shown, (Frame(shown.targets[0], found),), Window(0, 300, step=60))


def test_a_range_is_asked_for_at_multiples_of_the_step_and_an_instant_for_the_end() -> None:
    prometheus = ScriptedPrometheus({"up": {"": 1}, "up[1d]": {"": 1}})
    both = panel("stat", target("up"), target("up[$__range]", instant=True), gridPos={"w": 12, "h": 8})
    run(both, prometheus, window=WINDOW, variables={})

    assert prometheus.asked == [("up", START, END, 120), ("up[1d]", WINDOW.end, WINDOW.end, 1)]


def test_a_query_that_fails_leaves_the_others_their_answers() -> None:
    several = panel("timeseries", target("up"), target("down", refId="B"), target("$x", refId="C"))
    found = run(several, ScriptedPrometheus({"up": {"": 1}}), window=WINDOW, variables={})

    refused = "query C: $x is no variable, or written in a form that is not known"
    assert found.errors == ["query B: nobody wrote down down", refused]
    assert len(found.lines()) == 1


def test_a_series_is_named_as_the_legend_says() -> None:
    legends = ("{{tier}} of {{ tenant }}", "{{missing}}!", "__auto")

    assert [series_name(legend, {"tier": "high", "tenant": "a"}) for legend in legends] == ["high of a", "!", "a, high"]


@pytest.mark.parametrize(("mode", "bottom"), [("normal", 3), ("none", 0)])
def test_areas_are_stacked_in_their_order_where_they_are_to_be(mode: str, bottom: float) -> None:
    config = {"defaults": {"custom": {"stacking": {"mode": mode}}}}
    shown = filled("timeseries", series("a=1", (0, 3)), series("a=2", (0, 4)), fieldConfig=config)

    assert stacked(shown.lines()) == [[(0, 0, 3)], [(0, bottom, bottom + 4)]]


def test_equal_states_are_one_until_there_is_a_gap() -> None:
    assert states([(0, 1), (60, 1), (120, 2), (300, 2)], 60) == [(1, 0, 120), (2, 120, 180), (2, 300, 360)]


def test_a_bucket_counts_what_the_smaller_ones_do_not() -> None:
    found = (series("le=+Inf", (0, 9)), series("le=60", (0, 2)), series("le=300", (0, 7)))
    heat = filled("heatmap", *found, options={"yAxis": {"unit": "s"}})

    assert buckets(heat) == [("1 min", [(0, 2)]), ("5 min", [(0, 5)]), ("+Inf", [(0, 2)])]
