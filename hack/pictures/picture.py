"""Draws a complete dashboard: layout, titles and panels."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import matplotlib as mpl

from hack.pictures import theme
from hack.pictures.canvas import LOOK, Box, Canvas, Ink, shortened, text_width
from hack.pictures.dashboard import Dashboard, GridPos
from hack.pictures.frames import Filled
from hack.pictures.overtime import draw_heatmap, draw_timeline, draw_timeseries
from hack.pictures.table import draw_table
from hack.pictures.values import draw_bargauge, draw_stat
from hack.pictures.variables import Values, Window

_HEAD: Final = 52.0
_CHIPS: Final = 44.0
_PANEL_HEAD: Final = 34.0
_INSET: Final = 10.0
_CELL: Final = theme.ROW + theme.GAP
_ALL: Final = frozenset({".*", ".+"})

DRAWERS: Final[Mapping[str, Callable[[Canvas, Box, Filled], None]]] = {
    "timeseries": draw_timeseries,
    "stat": draw_stat,
    "bargauge": draw_bargauge,
    "table": draw_table,
    "state-timeline": draw_timeline,
    "heatmap": draw_heatmap,
}
_EVEN_WITHOUT_NUMBERS: Final = frozenset({"stat", "bargauge", "table"})
"""These panel types are drawn even if a value is not a number."""


def draw(dashboard: Dashboard, filled: Sequence[Filled], *, window: Window, variables: Values) -> Canvas:
    """Draw the dashboard with the data of all its panels. Raises: ValueError for a panel that cannot be drawn."""
    rows = max((each.panel.grid_pos.y + each.panel.grid_pos.h for each in filled), default=0)
    with mpl.rc_context(LOOK):
        canvas = Canvas(theme.WIDTH, round(_HEAD + _CHIPS + rows * _CELL + theme.MARGIN))
        _draw_head(canvas, dashboard, window)
        _draw_chips(canvas, dashboard, variables)
        for each in filled:
            _draw_panel(canvas, _box(each.panel.grid_pos), each)
    return canvas


def _box(place: GridPos) -> Box:
    corner = (theme.MARGIN + place.x * theme.COLUMN, _HEAD + _CHIPS + place.y * _CELL)
    return Box(*corner, theme.panel_width(place.w), place.h * _CELL - theme.GAP)


def _draw_head(canvas: Canvas, dashboard: Dashboard, window: Window) -> None:
    canvas.text((theme.MARGIN, _HEAD / 2), dashboard.title, Ink(20, bold=True))
    start, end = (datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M:%S") for t in (window.start, window.end))
    canvas.text((theme.WIDTH - theme.MARGIN, _HEAD / 2), f"{start} to {end} UTC", align="right")


def _draw_chips(canvas: Canvas, dashboard: Dashboard, variables: Values) -> None:
    """Draw the variables and their values."""
    across = float(theme.MARGIN)
    for variable in dashboard.templating.list:
        choice = " + ".join("All" if value in _ALL else value for value in variables[variable.name])
        for text, ink, fill in ((variable.label, Ink(bold=True), theme.CELL), (choice, Ink(), theme.BACKGROUND)):
            chip = Box(across, _HEAD, text_width(text, ink.size, bold=ink.bold) + 20, 30)
            canvas.rectangle(chip, fill, edge=theme.BORDER)
            canvas.text(chip.center, text, ink, align="center")
            across = chip.right
        across += 12


def _draw_panel(canvas: Canvas, box: Box, filled: Filled) -> None:
    if filled.panel.type == "row":
        arrow = [(box.left + 2, box.top + 12), (box.left + 12, box.top + 12), (box.left + 7, box.top + 18)]
        canvas.polygon(arrow, theme.TEXT)
        canvas.text((box.left + 22, box.center[1]), filled.panel.title, Ink(16, bold=True))
        return
    canvas.rectangle(box, theme.PANEL, edge=theme.BORDER)
    _draw_title(canvas, box, filled.panel.title)
    content = box.inset(left=_INSET, top=_PANEL_HEAD, right=_INSET, bottom=_INSET)
    if any(line.points or filled.panel.type in _EVEN_WITHOUT_NUMBERS for line in filled.lines()) and not filled.errors:
        DRAWERS[filled.panel.type](canvas, content, filled)
        return
    text = filled.errors[0] if filled.errors else filled.panel.field_config.of().no_value
    ink = Ink(17, theme.FAILURE if filled.errors else theme.FAINT)
    canvas.text(content.center, shortened(text, ink.size, width=content.width), ink, align="center")


def _draw_title(canvas: Canvas, box: Box, title: str) -> None:
    """Draw the title with the info icon, because every panel has a description."""
    text = shortened(title, theme.TITLE_SIZE, width=box.width - 2 * _INSET - 24)
    middle = box.top + _PANEL_HEAD / 2
    canvas.text((box.left + _INSET, middle), text, Ink(theme.TITLE_SIZE))
    at = (box.left + _INSET + text_width(text, theme.TITLE_SIZE) + 16, middle)
    canvas.circle(at, 6.5, edge=theme.FAINT)
    canvas.text(at, "i", Ink(10, theme.FAINT, bold=True), align="center")
