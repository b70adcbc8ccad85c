import json
import math
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from hack.pictures import __main__ as command
from hack.pictures.dashboard import Dashboard
from hack.pictures.frames import run_all
from hack.pictures.picture import DRAWERS, draw, problems
from hack.pictures.variables import Window, chosen
from tests.pictures.scripted import END, START, ScriptedPrometheus, dashboard, raw_panel, target

WINDOW = Window(START, END)
PROMETHEUS = ScriptedPrometheus(
    {
        "gpus": {"tier=high": 12, "tier=low": 30},
        "share": {"": 0.632},
        "cost": {"tier=high": 1234, "tier=low": 56.5},
        "buckets": {"le=60": 2, "le=300": 7, "le=+Inf": 9},
        "nothing": {},
    }
)


def place(x: int, y: int, w: int = 8, h: int = 6) -> dict[str, int]:
    return {"x": x, "y": y, "w": w, "h": h}


def drawn(board: Dashboard, path: Path) -> list[str]:
    variables = chosen(board.templating.list, {})
    filled = list(run_all(board, PROMETHEUS, window=WINDOW, variables=variables))
    canvas = draw(board, filled, window=WINDOW, variables=variables)
    canvas.save(path)
    return canvas.texts()


EVERYTHING = [
    raw_panel("row", title="A section", gridPos=place(0, 0, 24, 1)),
    raw_panel("timeseries", target("gpus", "{{tier}}"), gridPos=place(0, 1), options={"legend": {"calcs": ["max"]}}),
    raw_panel("stat", target("share"), gridPos=place(8, 1), fieldConfig={"defaults": {"unit": "percentunit"}}),
    raw_panel("gauge", target("share"), gridPos=place(16, 1)),
    raw_panel("bargauge", target("gpus", "{{tier}}"), gridPos=place(0, 7)),
    raw_panel("piechart", target("cost", "{{tier}}", instant=True), gridPos=place(8, 7)),
    raw_panel("barchart", target("cost", instant=True, format="table"), gridPos=place(16, 7)),
    raw_panel(
        "table",
        target("cost", instant=True, format="table"),
        gridPos=place(0, 13),
        fieldConfig={"defaults": {"unit": "currencyUSD"}},
    ),
    raw_panel("state-timeline", target("gpus", "{{tier}}"), gridPos=place(8, 13)),
    raw_panel("heatmap", target("buckets", "{{le}}", format="heatmap"), gridPos=place(16, 13)),
    raw_panel("text", gridPos=place(0, 19), options={"content": "## Why\nIt *is* so, see [docs](x.md).\n- an item"}),
    raw_panel("timeseries", target("nothing"), gridPos=place(8, 19), fieldConfig={"defaults": {"noValue": "no pods"}}),
    raw_panel("stat", target("unheard"), gridPos=place(16, 19), title="broken"),
]
CONTINUOUS = {"color": {"mode": "continuous-GrYlRd"}, "thresholds": {"mode": "percentage"}}
HIDE = [{"id": "custom.hideFrom", "value": {"viz": True}}]
VARIABLES = {"list": [{"name": "tier", "label": "Tier", "includeAll": True}, {"name": "hidden", "hide": 2}]}


def test_a_dashboard_is_drawn_with_its_data_and_the_same_data_are_the_same_bytes(tmp_path: Path) -> None:
    board = dashboard(*EVERYTHING, templating=VARIABLES)
    texts = drawn(board, tmp_path / "one.png")
    drawn(board, tmp_path / "two.png")

    expected = {
        *("GPUs", "Tier", "All", "2026-06-08 00:00:00 to 2026-06-09 00:00:00 UTC", "A section", "a timeseries"),
        *("high  Max: 12", "12:00", "63.2 %", "$1,234", "$56.50", "+Inf"),
        *("Why", "It is so, see docs.", "an item", "no pods", "unheard: nobody wrote down unheard"),
    }
    assert expected - set(texts) == set()
    assert "hidden" not in texts
    with Image.open(tmp_path / "one.png") as image:
        assert image.size == (1600, 52 + 44 + 25 * 38 + 16)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


@pytest.mark.parametrize("kind", sorted(DRAWERS))
def test_a_small_panel_of_many_series_does_not_stop_the_picture(kind: str, tmp_path: Path) -> None:
    many = ScriptedPrometheus({"many": {f"pod=a-rather-long-name-{number}": number - 20.5 for number in range(40)}})
    board = dashboard(raw_panel(kind, target("many", format="table"), gridPos=place(0, 0, 2, 2)))
    filled = list(run_all(board, many, window=WINDOW, variables={}))

    draw(board, filled, window=WINDOW, variables={}).save(tmp_path / "small.png")


@pytest.mark.parametrize("kind", sorted(DRAWERS))
@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1e9])
def test_no_value_stops_the_picture(kind: str, value: float, tmp_path: Path) -> None:
    odd = ScriptedPrometheus({"odd": {"le=1": value, "le=+Inf": value}})
    hidden = {"overrides": [{"matcher": {"id": "byName", "options": "1"}, "properties": HIDE}]}
    board = dashboard(
        raw_panel(kind, target("odd", "{{le}}"), gridPos=place(0, 0), fieldConfig={"defaults": CONTINUOUS}),
        raw_panel(kind, target("odd", "1"), gridPos=place(8, 0), fieldConfig=hidden),
    )
    filled = list(run_all(board, odd, window=WINDOW, variables={}))

    draw(board, filled, window=WINDOW, variables={}).save(tmp_path / "odd.png")


def test_a_value_that_is_no_number_is_shown_and_not_taken_for_missing_data() -> None:
    odd = ScriptedPrometheus({"odd": {"": math.nan}})
    board = dashboard(raw_panel("stat", target("odd")), raw_panel("timeseries", target("odd"), gridPos=place(0, 1)))
    filled = list(run_all(board, odd, window=WINDOW, variables={}))

    assert {"NaN", "No data"} < set(draw(board, filled, window=WINDOW, variables={}).texts())


def test_a_collapsed_row_is_drawn_open_and_pushes_down_what_follows(tmp_path: Path) -> None:
    inside = raw_panel("stat", target("share"), title="inside", gridPos=place(0, 5, 8, 4))
    board = dashboard(
        raw_panel("row", collapsed=True, gridPos=place(0, 0, 24, 1), panels=[inside]),
        raw_panel("stat", target("share"), title="after", gridPos=place(0, 1, 8, 4)),
    )

    assert {"inside", "after"} < set(drawn(board, tmp_path / "rows.png"))
    with Image.open(tmp_path / "rows.png") as image:
        assert image.height == 52 + 9 * 38 + 16


def test_what_cannot_be_drawn_is_a_problem() -> None:
    steps = [{"id": "groupBy"}]
    board = dashboard(
        raw_panel("news"), raw_panel("table", target("gpus"), transformations=steps), raw_panel("stat", target("x"))
    )
    filled = list(run_all(board, PROMETHEUS, window=WINDOW, variables={}))

    assert problems(filled) == [
        "a news: panels of type news are not drawn",
        "a table: the transformation groupBy is left out",
        "a stat: x: nobody wrote down x",
    ]


@pytest.fixture
def board_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(command, "Prometheus", lambda _: PROMETHEUS)
    return tmp_path / "board.json"


def written(path: Path, *panels: dict[str, Any]) -> str:
    path.write_text(json.dumps({"title": "GPUs", "time": {"from": "now-1h"}, "panels": list(panels)}))
    return str(path)


def test_the_command_draws_every_file_into_the_folder(board_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(board_file, raw_panel("stat", target("share")))
    folder = board_file.parent / "pictures"

    assert command.main(["--prometheus", "http://x", "--at", "2026-06-09T00:00:00Z", "--to", str(folder), file]) == 0
    assert capsys.readouterr().out == f"{folder / 'board.png'}\n"
    assert (folder / "board.png").exists()


def test_a_query_that_fails_makes_the_command_fail_after_all_is_drawn(
    board_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(board_file, raw_panel("stat", target("unheard")))

    assert command.main(["--prometheus", "http://x", "--at", str(END), "--to", str(board_file.parent), file]) == 1
    assert capsys.readouterr().err == f"{file}: a stat: unheard: nobody wrote down unheard\n"
    assert board_file.with_suffix(".png").exists()


def test_a_check_only_says_which_panels_have_data(board_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(board_file, raw_panel("stat", target("share")), raw_panel("table", target("nothing")))

    assert command.main(["--prometheus", "http://x", "--at", str(END), "--check-only", file]) == 0
    assert capsys.readouterr().out == f"{file}: data: a stat\n{file}: NO DATA: a table\n"
    assert not board_file.with_suffix(".png").exists()


def test_a_file_that_is_no_dashboard_is_named(board_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board_file.write_text('{"panels": [{"type": 3}]}')

    assert command.main(["--prometheus", "http://x", "--check-only", str(board_file)]) == 1
    assert "Expected `str`, got `int` - at `$.panels[0].type`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"time": {"from": "yesterday"}}', "'yesterday' is no duration"),
        (
            '{"panels": [{"type": "stat", "targets": [{"expr": "share"}], "fieldConfig": {"defaults": {"unit": 3}}}]}',
            "Exp",
        ),
    ],
)
def test_a_dashboard_that_cannot_be_drawn_says_why(
    content: str, problem: str, board_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board_file.write_text(content)

    assert command.main(["--prometheus", "http://x", "--to", str(board_file.parent), str(board_file)]) == 1
    assert f"{board_file}: {problem}" in capsys.readouterr().err
