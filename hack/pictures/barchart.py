"""Bars by category."""

import math
from datetime import UTC, datetime
from typing import Final, NamedTuple

from hack.pictures import theme
from hack.pictures.axes import Scale, ticks, value_axis, value_scale
from hack.pictures.canvas import FAINT, TEXT, Box, Canvas, Ink, Stroke, shortened, text_width
from hack.pictures.fields import Field
from hack.pictures.frames import Filled
from hack.pictures.legend import Entry, draw_legend
from hack.pictures.overrides import field_of
from hack.pictures.table import TIME, Column, table_of

_GROUP: Final = 0.7
"""Of the room of a category."""
_LABELS: Final = 24.0
_WIDEST_NAME: Final = 0.3
_PADDED: Final = 0.05
"""Of the width, which the scale leaves free beyond the longest bar."""


class Bars(NamedTuple):
    """A row of values, one for each category."""

    name: str
    field: Field
    values: tuple[float, ...]
    place: int

    @property
    def color(self) -> str:
        """Of all bars of the row."""
        return self.field.color_of(max(self.values, default=0.0), index=self.place, among=self.values)


class Chart(NamedTuple):
    """All of the panel's data, and whether a category's values stand on each other."""

    categories: tuple[str, ...]
    rows: tuple[Bars, ...]
    stacking: str

    def spans(self) -> list[tuple[int, Bars, float, float]]:
        """Each bar: category, row, where it begins and where it ends."""
        found = []
        for category in range(len(self.categories)):
            total = sum(row.values[category] for row in self.rows) or 1.0
            height = 0.0
            for row in self.rows:
                value = row.values[category] / (total if self.stacking == "percent" else 1)
                start = 0.0 if self.stacking == "none" else height
                height = start + value
                found.append((category, row, start, height))
        return found


def draw_barchart(canvas: Canvas, box: Box, filled: Filled) -> None:
    """The panel's content."""
    chart = chart_of(filled)
    if not chart.rows:
        return
    options = filled.panel.options
    entries = [Entry(row.name, row.color) for row in chart.rows]
    plot = draw_legend(canvas, box, entries, options.legend)
    field = Field(unit="percentunit", min=0, max=1) if chart.stacking == "percent" else chart.rows[0].field
    scale = value_scale([end for *_, end in chart.spans()], field, zero=True)
    if options.orientation == "horizontal":
        _draw_lying(canvas, plot, chart, field=field, scale=scale)
    else:
        _draw_standing(canvas, plot, chart, field=field, scale=scale)


def chart_of(filled: Filled) -> Chart:
    """Categories from the first column of labels; without labels, from the times."""
    table = [column for column in table_of(filled) if column.cells]
    wanted = filled.panel.options.x_field
    labels = next((c for c in table if c.name == wanted), None) or next((c for c in table if _is_label(c)), None)
    if labels is None or any(len(series.points) > 1 for frame in filled.frames for series in frame.series):
        return _over_time(filled)
    numbers = [column for column in table if column.is_numeric and not column.origin.startswith(TIME)]
    fields = [(column, field_of(filled.panel, column.name, column.origin)) for column in numbers]
    shown = [(column, field) for column, field in fields if not (field.custom.hidden or field.custom.hide_from.viz)]
    rows = tuple(
        Bars(field.display_name or column.name, field, tuple(map(_number, column.cells)), place)
        for place, (column, field) in enumerate(shown)
    )
    return Chart(tuple(str(cell or "") for cell in labels.cells), rows, filled.panel.options.stacking)


def _is_label(column: Column) -> bool:
    return not column.is_numeric and not column.origin.startswith(TIME)


def _number(cell: object) -> float:
    return cell if isinstance(cell, float) and math.isfinite(cell) else 0.0


def _over_time(filled: Filled) -> Chart:
    lines = filled.lines()
    times = sorted({moment for line in lines for moment, _ in line.points})
    form = "%m/%d" if len(times) > 1 and times[1] - times[0] >= 24 * 3600 else "%m/%d %H:%M"
    rows = [
        Bars(line.name, line.field, tuple(dict(line.points).get(t, 0.0) for t in times), line.place) for line in lines
    ]
    texts = tuple(datetime.fromtimestamp(moment, UTC).strftime(form) for moment in times)
    return Chart(texts, tuple(rows), filled.panel.options.stacking)


def _draw_standing(canvas: Canvas, box: Box, chart: Chart, *, field: Field, scale: Scale) -> None:
    axis = value_axis(scale, field, height=box.height - _LABELS)
    plot = box.inset(left=axis.width, right=8, top=8, bottom=_LABELS)
    axis.draw(canvas, plot)
    room = plot.width / len(chart.categories)
    widest = max(text_width(name, theme.SMALL_SIZE) for name in chart.categories)
    every = math.ceil(min(widest + 12, 90.0) / room)  # names in full, or some of them
    for category, name in enumerate(chart.categories):
        if category % every == 0:
            shown = shortened(name, theme.SMALL_SIZE, width=room * every - 4)
            canvas.text((plot.left + (category + 0.5) * room, plot.bottom + 14), shown, FAINT, align="center")
    for category, row, start, end in chart.spans():
        left, width = _side_by_side(chart, row, category, room=room)
        low, high = scale.y(start, plot), scale.y(end, plot)
        bar = Box(plot.left + left, min(low, high), width, abs(low - high))
        canvas.rectangle(bar, row.color, alpha=0.85)
        text = row.field.text(end - start)
        if chart.stacking == "none" and text_width(text, theme.SMALL_SIZE) <= width + 4:
            canvas.text((bar.center[0], bar.top - 8), text, Ink(theme.SMALL_SIZE), align="center")


def _draw_lying(canvas: Canvas, box: Box, chart: Chart, *, field: Field, scale: Scale) -> None:
    names = max(text_width(name, TEXT.size) for name in chart.categories)
    texts = max(text_width(row.field.text(value), theme.SMALL_SIZE) for row in chart.rows for value in row.values)
    right = 24 if chart.stacking != "none" else max(texts + 8 - box.width * _PADDED, 24)
    plot = box.inset(left=min(names, box.width * _WIDEST_NAME) + 10, right=right, top=2, bottom=_LABELS)
    for tick in ticks(scale, count=plot.width / 110, field=field):
        across = plot.left + scale.share(tick) * plot.width
        canvas.line([(across, plot.top), (across, plot.bottom)], Stroke(theme.GRID))
        canvas.text((across, plot.bottom + 14), field.text(tick, digits=6), FAINT, align="center")
    room = plot.height / len(chart.categories)
    for category, name in enumerate(chart.categories):
        shown = shortened(name, TEXT.size, width=box.width * _WIDEST_NAME)
        canvas.text((plot.left - 8, plot.top + (category + 0.5) * room), shown, align="right")
    for category, row, start, end in chart.spans():
        top, height = _side_by_side(chart, row, category, room=room)
        left, right = (plot.left + scale.share(value) * plot.width for value in sorted((start, end)))
        bar = Box(left, plot.top + top, right - left, height)
        canvas.rectangle(bar, row.color, alpha=0.85)
        text = row.field.text(end - start)
        if chart.stacking == "none" and bar.right + text_width(text, theme.SMALL_SIZE) + 6 <= box.right:
            canvas.text((bar.right + 5, bar.center[1]), text, Ink(theme.SMALL_SIZE))


def _side_by_side(chart: Chart, row: Bars, category: int, *, room: float) -> tuple[float, float]:
    """Where a bar begins along the axis of the categories, and its breadth."""
    order = chart.rows if chart.stacking == "none" else (row,)
    breadth = room * _GROUP / len(order)
    return category * room + room * (1 - _GROUP) / 2 + order.index(row) * breadth, breadth * 0.96
