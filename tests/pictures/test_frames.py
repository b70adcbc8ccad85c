import math

import pytest

from hack.pictures.calcs import calc
from hack.pictures.dashboard import Target
from hack.pictures.frames import Filled, Frame, panels_with_data, run, run_all, series_name
from hack.pictures.heatmap import rows_of
from hack.pictures.overrides import field_of
from hack.pictures.timeline import State, states
from hack.pictures.timeseries import shaped
from hack.pictures.variables import Window
from tests.pictures.scripted import END, START, ScriptedPrometheus, dashboard, panel, raw_panel, series, target

WINDOW = Window(START + 7, END + 7)


def filled(
    kind: str, *found: str, unit: str = "", points: tuple[tuple[float, float], ...] = (), **options: object
) -> Filled:
    shown = panel(kind, fieldConfig={"defaults": {"unit": unit, **options}})
    frame = Frame(
        Target(format="heatmap"), "q", Window(0, 300, step=60), tuple(series(labels, *points) for labels in found)
    )
    return Filled(shown, (frame,), frame.window)


def test_a_range_is_asked_for_at_multiples_of_the_step() -> None:
    prometheus = ScriptedPrometheus({"up": {"": 1}})
    run(panel("timeseries", target("up"), gridPos={"w": 12, "h": 8}), prometheus, window=WINDOW, variables={})

    assert prometheus.asked == [("up", START, END, 120)]


def test_an_instant_query_is_asked_for_the_end() -> None:
    prometheus = ScriptedPrometheus({"up[1d]": {"": 1}})
    run(panel("stat", target("up[$__range]", instant=True)), prometheus, window=WINDOW, variables={})

    assert prometheus.asked == [("up[1d]", WINDOW.end, WINDOW.end, 1)]


def test_a_query_that_fails_leaves_the_others_their_answers() -> None:
    both = panel("timeseries", target("up"), target("down", refId="B"), target("hidden", hide=True))
    found = run(both, ScriptedPrometheus({"up": {"": 1}}), window=WINDOW, variables={})

    assert found.errors == ["down: nobody wrote down down"]
    assert found.has_data


def test_it_is_known_which_panels_have_data() -> None:
    board = dashboard(
        raw_panel("timeseries", target("up"), title="has"),
        raw_panel("stat", target("nothing"), title="has not"),
        raw_panel("stat", target("nan"), title="no number"),
        raw_panel("stat", target("unknown"), title="fails"),
        raw_panel("text", title="asks nothing"),
        raw_panel("row", title="closed", collapsed=True, panels=[raw_panel("stat", target("up"), title="inside")]),
    )
    prometheus = ScriptedPrometheus({"up": {"": 1}, "nothing": {}, "nan": {"": math.nan}})

    found = panels_with_data(list(run_all(board, prometheus, window=WINDOW, variables={})))

    assert found == {"has": True, "has not": False, "no number": False, "fails": False, "inside": True}


@pytest.mark.parametrize(
    ("legend", "labels", "name"),
    [
        ("{{tier}} of {{ tenant }}", "tier=high,tenant=a", "high of a"),
        ("{{missing}}!", "tier=high", "!"),
        ("__auto", "tier=high", "high"),
        ("__auto", "tier=high,tenant=a", '{tenant="a", tier="high"}'),
        ("__auto", "", "the query"),
        ("", "tier=high", '{tier="high"}'),
        ("", "__name__=up,tier=high", 'up{tier="high"}'),
    ],
)
def test_a_series_is_named_as_the_legend_says(legend: str, labels: str, name: str) -> None:
    assert series_name(legend, series(labels).labels, otherwise="the query") == name


def test_a_series_can_be_named_and_hidden_by_its_field() -> None:
    assert [line.name for line in filled("stat", "tier=high", displayName="Tier ${__field.labels.tier}").lines()] == [
        "Tier high"
    ]
    assert filled("stat", "tier=high", custom={"hideFrom": {"viz": True}}).lines() == []


def test_calculations_are_those_of_grafana() -> None:
    names = ("lastNotNull", "first", "mean", "max", "min", "sum", "count", "range", "diff", "delta", "unheard of")

    assert [calc(name).of([4.0, 1.0, 7.0]) for name in names] == [7, 4, 4, 7, 1, 12, 3, 6, 3, 6, 7]


def test_areas_are_stacked_in_their_order() -> None:
    lines = filled(
        "timeseries", "a=1", "a=2", points=((0, 3), (60, 4)), custom={"stacking": {"mode": "normal"}}
    ).lines()
    _, upper = shaped(lines)

    assert (upper.bottoms, upper.tops) == (((0, 3), (60, 4)), ((0, 6), (60, 8)))


def test_areas_in_percent_are_shares_of_the_sum() -> None:
    lines = filled("timeseries", "a=1", "a=2", points=((0, 3),), custom={"stacking": {"mode": "percent"}}).lines()

    assert [shape.tops for shape in shaped(lines)] == [((0, 0.5),), ((0, 1.0),)]


def test_equal_states_are_one_until_there_is_a_gap() -> None:
    [line] = filled("state-timeline", "a=1", points=((0, 1), (60, 1), (120, 2), (300, 2))).lines()

    assert list(states(line, merged=True)) == [State(1, 0, 120), State(2, 120, 180), State(2, 300, 360)]
    assert len(list(states(line, merged=False))) == 4


def test_a_bucket_counts_what_the_smaller_ones_do_not() -> None:
    heat = filled("heatmap", unit="s")
    found = (series("le=+Inf", (0, 9)), series("le=60", (0, 2)), series("le=300", (0, 7)))
    rows = rows_of(heat._replace(frames=(heat.frames[0]._replace(series=found),)), field_of(heat.panel))

    assert [(row.label, row.counts[0]) for row in rows] == [("1 min", 2), ("5 min", 5), ("+Inf", 2)]
