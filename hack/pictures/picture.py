"""A whole dashboard: where its panels are, what stands around them, and who draws them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import matplotlib as mpl

from hack.pictures import theme
from hack.pictures.barchart import draw_barchart
from hack.pictures.bargauge import draw_bargauge
from hack.pictures.canvas import FAINT, LOOK, Box, Canvas, Ink, Stroke, shortened, text_width
from hack.pictures.dashboard import Dashboard, Panel, Variable
from hack.pictures.frames import Filled, panel_width
from hack.pictures.gauge import draw_gauge
from hack.pictures.grid import draw_table
from hack.pictures.heatmap import draw_heatmap
from hack.pictures.overrides import field_of
from hack.pictures.pie import draw_pie
from hack.pictures.prose import draw_text
from hack.pictures.stat import draw_stat
from hack.pictures.table import unknown_steps
from hack.pictures.timeline import draw_timeline
from hack.pictures.timeseries import draw_timeseries
from hack.pictures.variables import Values, Window, worded

_HEAD: Final = 52.0
_CHIPS: Final = 44.0
_PANEL_HEAD: Final = 34.0
_INSET: Final = 10.0
_HIDDEN: Final = 2
"""How Grafana marks a variable that is not shown."""
_CELL: Final = theme.ROW + theme.GAP
_WITHOUT_DATA: Final = frozenset({"row", "text"})
_EVEN_WITHOUT_NUMBERS: Final = frozenset({"stat", "gauge", "bargauge", "table"})
"""They say so when a value is not a number."""

DRAWERS: Final[Mapping[str, Callable[[Canvas, Box, Filled], None]]] = {
    "timeseries": draw_timeseries,
    "stat": draw_stat,
    "gauge": draw_gauge,
    "bargauge": draw_bargauge,
    "barchart": draw_barchart,
    "piechart": draw_pie,
    "table": draw_table,
    "state-timeline": draw_timeline,
    "status-history": draw_timeline,
    "heatmap": draw_heatmap,
    "text": draw_text,
}


def tops(dashboard: Dashboard) -> Iterator[int]:
    """Of all panels, on the grid. Rows that are collapsed are open here: nobody can click on a picture."""
    shift = 0
    for panel in dashboard.in_order():
        top = panel.grid_pos.y + shift
        yield top
        first = min((inner.grid_pos.y for inner in panel.panels), default=0)
        yield from (top + 1 + inner.grid_pos.y - first for inner in panel.panels)
        shift += max((inner.grid_pos.y + inner.grid_pos.h - first for inner in panel.panels), default=0)


def draw(dashboard: Dashboard, filled: Sequence[Filled], *, window: Window, variables: Values) -> Canvas:
    """The picture of the dashboard, `filled` with the data of all its panels."""
    places = [(each, top) for each, top in zip(filled, tops(dashboard), strict=True)]
    shown = [variable for variable in dashboard.templating.list if variable.hide != _HIDDEN]
    head = _HEAD + (_CHIPS if shown else 0.0)
    rows = max((top + each.panel.grid_pos.h for each, top in places), default=0)
    with mpl.rc_context(LOOK):
        canvas = Canvas(theme.WIDTH, round(head + rows * _CELL + theme.MARGIN))
        _draw_head(canvas, dashboard, window)
        _draw_chips(canvas, shown, variables)
        for each, top in places:
            box = _box(each.panel, head + top * _CELL)
            _draw_panel(canvas, box, each, title=worded(each.panel.title, variables))
    return canvas


def _box(panel: Panel, top: float) -> Box:
    column = (theme.WIDTH - 2 * theme.MARGIN + theme.GAP) / theme.COLUMNS
    left = theme.MARGIN + panel.grid_pos.x * column
    return Box(left, top, panel_width(panel), panel.grid_pos.h * _CELL - theme.GAP)


def _draw_head(canvas: Canvas, dashboard: Dashboard, window: Window) -> None:
    canvas.text((theme.MARGIN, _HEAD / 2), dashboard.title, Ink(20, bold=True))
    start, end = (datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M:%S") for t in (window.start, window.end))
    canvas.text((theme.WIDTH - theme.MARGIN, _HEAD / 2), f"{start} to {end} UTC", align="right")


def _draw_chips(canvas: Canvas, shown: Sequence[Variable], variables: Values) -> None:
    """The variables and what is chosen."""
    across = float(theme.MARGIN)
    for variable in shown:
        texts = (variable.label or variable.name, _choice(variable, variables))
        for text, ink, fill in zip(texts, (Ink(bold=True), Ink()), (theme.CELL, theme.BACKGROUND), strict=True):
            chip = Box(across, _HEAD, text_width(text, ink.size, bold=ink.bold) + 20, 30)
            canvas.rectangle(chip, fill, edge=theme.BORDER)
            canvas.text(chip.center, text, ink, align="center")
            across = chip.right
        across += 12


def _choice(variable: Variable, variables: Values) -> str:
    if variable.type == "datasource":
        return str(variable.current.get("text", "Prometheus"))
    if variable.type == "textbox":
        return " ".join(variables[variable.name])
    return worded(f"${variable.name}", variables)


def _draw_panel(canvas: Canvas, box: Box, filled: Filled, *, title: str) -> None:
    if filled.panel.type == "row":
        canvas.polygon(
            [(box.left + 2, box.top + 12), (box.left + 12, box.top + 12), (box.left + 7, box.top + 18)], theme.TEXT
        )
        canvas.text((box.left + 22, box.center[1]), title, Ink(16, bold=True))
        return
    canvas.rectangle(box, theme.PANEL, edge=theme.BORDER)
    if title:
        _draw_title(canvas, box, title, described=bool(filled.panel.description))
    if filled.panel.time_from:
        at = (box.right - _INSET, box.top + _PANEL_HEAD / 2)
        canvas.text(at, f"Last {filled.panel.time_from}", FAINT, align="right")
    content = box.inset(left=_INSET, top=_PANEL_HEAD if title else _INSET, right=_INSET, bottom=_INSET)
    drawer = DRAWERS.get(filled.panel.type)
    if filled.errors:
        _draw_errors(canvas, content, filled.errors)
    elif drawer is None:
        canvas.text(content.center, f"Panels of type {filled.panel.type} are not drawn", FAINT, align="center")
    elif _has_content(filled):
        drawer(canvas, content, filled)
    else:
        nothing = field_of(filled.panel).no_value or "No data"
        canvas.text(content.center, shortened(nothing, 17, width=content.width), Ink(17, theme.FAINT), align="center")


def _has_content(filled: Filled) -> bool:
    if filled.panel.type in _WITHOUT_DATA:
        return True
    return any(line.points or filled.panel.type in _EVEN_WITHOUT_NUMBERS for line in filled.lines())


def _draw_title(canvas: Canvas, box: Box, title: str, *, described: bool) -> None:
    ink = Ink(theme.TITLE_SIZE)
    text = shortened(title, ink.size, width=box.width - 2 * _INSET - 24)
    middle = box.top + _PANEL_HEAD / 2
    canvas.text((box.left + _INSET, middle), text, ink)
    if described:
        at = (box.left + _INSET + text_width(text, ink.size) + 16, middle)
        canvas.ring(at, 6.5, Stroke(theme.FAINT, 1.2))
        canvas.text(at, "i", Ink(10, theme.FAINT, bold=True), align="center")


def _draw_errors(canvas: Canvas, box: Box, errors: Sequence[str]) -> None:
    ink = Ink(theme.SMALL_SIZE, theme.FAILURE)
    for number, line in enumerate(line for error in errors for line in _cut(error, box.width, ink.size)):
        if (number + 1) * 18 <= box.height:
            canvas.text((box.left, box.top + number * 18 + 9), line, ink)


def _cut(text: str, width: float, size: float) -> Iterator[str]:
    """Lines that fit, cut anywhere: queries have few spaces."""
    each = max(int(width / (text_width(text, size) / len(text))), 1)
    for start in range(0, len(text), each):
        yield shortened(text[start : start + each], size, width=width * 1.1)


def problems(filled: Sequence[Filled]) -> list[str]:
    """What the picture cannot show, by panel."""
    found = []
    for each in filled:
        panel = each.panel
        found += [f"{panel.title}: {error}" for error in each.errors]
        if panel.type not in DRAWERS and panel.type != "row":
            found.append(f"{panel.title}: panels of type {panel.type} are not drawn")
        if panel.type in ("table", "barchart"):
            found += [
                f"{panel.title}: the transformation {step} is left out" for step in unknown_steps(panel.transformations)
            ]
    return found
