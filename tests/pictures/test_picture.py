import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from hack.pictures import __main__ as command
from hack.pictures.canvas import Canvas
from hack.pictures.dashboard import Dashboard, read
from hack.pictures.frames import run
from hack.pictures.picture import DRAWERS, draw
from hack.pictures.variables import Window, chosen
from tests.pictures.scripted import END, START, ScriptedPrometheus, dashboard, raw_dashboard, raw_panel, target

WINDOW = Window(START, END)
COMMITTED = sorted((Path(__file__).parents[2] / "dashboards" / "generated").glob("*.json"))
PROMETHEUS = ScriptedPrometheus(
    {
        "gpus": {"tier=high": 12, "tier=low": 30},
        "share": {"": 0.632},
        "cost": {"tier=high": 1234, "tier=low": 56.5},
        "buckets": {"le=60": 2, "le=300": 7, "le=+Inf": 9},
        "nothing": {},
    }
)
ANYTHING = ScriptedPrometheus(defaultdict(lambda: {"le=60,tier=high,currency=USD": 1}))


def place(x: int, y: int, w: int = 8, h: int = 6) -> dict[str, int]:
    return {"x": x, "y": y, "w": w, "h": h}


def drawn(board: Dashboard, source: ScriptedPrometheus = PROMETHEUS) -> Canvas:
    variables = chosen(board.templating.list, {})
    filled = [run(panel, source, window=WINDOW, variables=variables) for panel in board.all_panels()]
    assert [error for each in filled for error in each.errors if "unheard" not in error] == []
    return draw(board, filled, window=WINDOW, variables=variables)


GPUS = target("gpus", "{{tier}}")
SOME = [
    raw_panel("row", title="A section", gridPos=place(0, 0, 24, 1)),
    raw_panel("timeseries", GPUS, gridPos=place(0, 1), options={"legend": {"calcs": ["max"]}}),
    raw_panel("stat", target("share"), gridPos=place(8, 1), fieldConfig={"defaults": {"unit": "percentunit"}}),
    raw_panel(
        "table", target("cost", instant=True), gridPos=place(0, 13), fieldConfig={"defaults": {"unit": "currencyUSD"}}
    ),
    raw_panel("heatmap", target("buckets"), gridPos=place(16, 13), options={"cellValues": {"unit": "suffix: pods"}}),
    raw_panel("timeseries", target("nothing"), gridPos=place(8, 19), fieldConfig={"defaults": {"noValue": "no pods"}}),
    raw_panel("stat", target("unheard"), gridPos=place(16, 19)),
]
TIER = {"name": "tier", "label": "Tier", "type": "query", "allValue": ".*"}


def test_a_dashboard_is_drawn_with_its_data_and_the_same_data_are_the_same_bytes(tmp_path: Path) -> None:
    board = dashboard(*SOME, templating={"list": [TIER]})
    canvas = drawn(board)
    canvas.save(tmp_path / "one.png")
    drawn(board).save(tmp_path / "two.png")

    expected = {
        *("GPUs", "Tier", "All", "2026-06-08 00:00:00 to 2026-06-09 00:00:00 UTC", "A section", "a timeseries"),
        *("Max", "high", "12:00", "63.2 %", "$1,234", "$56.5", "+Inf", "0 to 5 pods", "no pods"),
        "query A: nobody wrote down unheard",
    }
    assert expected - set(canvas.texts()) == set()
    with Image.open(tmp_path / "one.png") as image:
        assert image.size == (1600, 52 + 44 + 25 * 38 + 16)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_every_committed_dashboard_can_be_drawn(path: Path) -> None:
    assert "No data" not in drawn(read(path), ANYTHING).texts()


@pytest.mark.parametrize(("count", "named"), [(7, 6), (9, 3)])
def test_a_few_series_take_up_to_half_of_a_panel_to_be_named(count: int, named: int) -> None:
    pods = ScriptedPrometheus({"x": {f"pod={number}": number for number in range(count)}})
    shown = raw_panel("timeseries", target("x", "pod {{pod}}"), gridPos=place(0, 0, 12, 9))

    texts = drawn(dashboard(shown), pods).texts()
    assert sum(text.startswith("pod ") for text in texts) == named
    assert f"+ {count - named}" in texts


@pytest.mark.parametrize("kind", sorted(DRAWERS))
@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1e9])
def test_neither_odd_values_nor_a_small_panel_stop_the_picture(kind: str, value: float, tmp_path: Path) -> None:
    odd = ScriptedPrometheus({"x": {f"pod=a-rather-long-name,le={number}": value for number in range(40)}})
    places = [place(0, 0, 2, 2), place(2, 0, 12, 8)]
    drawn(dashboard(*(raw_panel(kind, target("x"), gridPos=each) for each in places)), odd).save(tmp_path / "odd.png")


def test_a_value_that_is_no_number_is_shown_and_not_taken_for_missing_data() -> None:
    odd = ScriptedPrometheus({"odd": {"": math.nan}})
    board = dashboard(raw_panel("stat", target("odd")), raw_panel("timeseries", target("odd"), gridPos=place(0, 1)))

    assert {"NaN", "No data"} < set(drawn(board, odd).texts())


@pytest.fixture
def board_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(command, "Prometheus", lambda _: PROMETHEUS)
    return tmp_path / "board.json"


def run_command(file: Path, board: dict[str, Any]) -> int:
    file.write_text(json.dumps(board))
    return command.main(["--prometheus", "http://x", "--at", "2026-06-09", "--to", str(file.parent), str(file)])


@pytest.mark.parametrize(("query", "problem"), [("share", ""), ("unheard", "query A: nobody wrote down unheard")])
def test_a_query_that_fails_makes_the_command_fail_after_all_is_drawn(
    query: str, problem: str, board_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = board_file.with_suffix(".png")

    assert run_command(board_file, raw_dashboard(raw_panel("stat", target(query)))) == bool(problem)
    assert capsys.readouterr() == (f"{picture}\n", f"{board_file}: a stat: {problem}\n" if problem else "")
    assert picture.exists()


def overridden(unit: str) -> dict[str, Any]:
    matcher = {"id": "byName", "options": "high"}
    return {"overrides": [{"matcher": matcher, "properties": [{"id": "unit", "value": unit}]}]}


@pytest.mark.parametrize(
    ("panel", "problem"),
    [
        (raw_panel("news"), "Invalid enum value 'news' - at `$.panels[0].type`"),
        (raw_panel("table", GPUS, transformations=[{"id": "groupBy"}]), "Invalid enum value 'groupBy'"),
        (raw_panel("stat", GPUS, fieldConfig={"defaults": {"unit": "furlong"}}), "the unit 'furlong' is not known"),
        (raw_panel("stat", GPUS, fieldConfig=overridden("furlong")), "the unit 'furlong' is not known"),
        (raw_panel("timeseries", GPUS, fieldConfig=overridden("s")), "a timeseries: series of several units"),
        (raw_panel("stat", GPUS, options={"reduceOptions": {"calcs": ["sum"]}}), "Invalid enum value 'sum'"),
        (raw_panel("stat", GPUS, title="GPUs of $tier"), "Expected `str` matching"),
        (raw_panel("stat", GPUS, timeFrom="7d"), "Expected `null`, got `str` - at `$.panels[0].timeFrom`"),
        (raw_panel("row", panels=[raw_panel("stat")]), "Expected `array` of length 0"),
    ],
)
def test_what_is_not_known_is_a_problem(
    panel: dict[str, Any], problem: str, board_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(board_file, raw_dashboard(panel)) == 1
    assert f"{board_file}: {problem}" in capsys.readouterr().err
