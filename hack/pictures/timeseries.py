"""Lines, areas and bars over time."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from hack.pictures.axes import BELOW, BESIDE, ValueAxis, draw_time_axis, time_x, value_axis, value_scale
from hack.pictures.calcs import calc
from hack.pictures.canvas import Box, Canvas, Point, Stroke
from hack.pictures.dashboard import Legend
from hack.pictures.fields import Field
from hack.pictures.frames import Filled, Line
from hack.pictures.legend import Entry, draw_legend
from hack.pictures.overrides import field_of
from hack.pictures.variables import Window

_BAR: Final = 0.7
"""Of the room between two points."""
_MISSING: Final = 1.5
"""So many steps without a point are a gap in the line."""
_DASHES: Final = {"dash": (10.0, 7.0), "dot": (1.0, 6.0)}


class Shape(NamedTuple):
    """A line with the tops and bottoms of its area, by time; what is not stacked stands on zero."""

    line: Line
    tops: tuple[Point, ...]
    bottoms: tuple[Point, ...]


def draw_timeseries(canvas: Canvas, box: Box, filled: Filled) -> None:
    """The panel's content."""
    lines = [line for line in filled.lines() if line.points]
    plot = draw_legend(canvas, box, legend_entries(lines, filled.panel.options.legend), filled.panel.options.legend)
    shapes = shaped(lines)
    left, right = _sides(shapes)
    axes = [_axis(side, height=plot.height, right=side is right) for side in (left, right) if side]
    right_width = axes[1].width if len(axes) > 1 else BESIDE
    plot = plot.inset(left=axes[0].width, right=right_width, top=6, bottom=BELOW)
    draw_time_axis(canvas, plot, filled.window)
    for axis, side in zip(axes, (left, right), strict=False):
        axis.draw(canvas, plot)
        _draw_shapes(canvas, plot, side, axis=axis, window=filled.window)
    draw_thresholds(canvas, plot, field_of(filled.panel), axis=axes[0])


def legend_entries(lines: Sequence[Line], legend: Legend) -> list[Entry]:
    """One for each line, sorted as the legend is."""
    shown = [line for line in lines if not line.field.custom.hide_from.legend]
    by = next((name for name in legend.calcs if calc(name).title == legend.sort_by), "")
    if by:
        shown.sort(key=lambda line: line.reduced(by), reverse=legend.sort_desc)
    return [
        Entry(
            line.name,
            line.color,
            tuple((calc(name).title, line.field.text(line.reduced(name))) for name in legend.calcs),
        )
        for line in shown
    ]


def shaped(lines: Sequence[Line]) -> list[Shape]:
    """Stacked in their order where they are to be; in percent, of the sum at each time."""
    heights: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    sums: dict[float, float] = defaultdict(float)
    for line in lines:
        for moment, value in line.points if line.field.custom.stacking.mode == "percent" else ():
            sums[moment] += value
    return [_stacked(line, heights[f"{line.field.custom.stacking.mode} {line.field.unit}"], sums) for line in lines]


def _stacked(line: Line, heights: dict[float, float], sums: dict[float, float]) -> Shape:
    mode = line.field.custom.stacking.mode
    sign = -1 if line.field.custom.transform == "negative-Y" else 1
    tops, bottoms = [], []
    for moment, value in line.points:
        height = sign * (value / (sums[moment] or 1) if mode == "percent" else value)
        bottom = 0.0 if mode == "none" else heights[moment]
        heights[moment] += height
        bottoms.append((moment, bottom))
        tops.append((moment, bottom + height))
    return Shape(line, tuple(tops), tuple(bottoms))


def _sides(shapes: Sequence[Shape]) -> tuple[list[Shape], list[Shape]]:
    """What is read at the left, and at the right: another unit, or what was put there."""
    first = shapes[0].line.field.unit

    def at_right(field: Field) -> bool:
        place = field.custom.axis_placement
        return place == "right" or (place == "auto" and field.unit != first)

    left = [shape for shape in shapes if not at_right(shape.line.field)]
    right = [shape for shape in shapes if at_right(shape.line.field)]
    return (left, right) if left else (right, [])


def _axis(shapes: Sequence[Shape], *, height: float, right: bool) -> ValueAxis:
    field = shapes[0].line.field
    percent = field.custom.stacking.mode == "percent"
    if percent:
        field = Field(unit="percentunit", min=0, max=1)
    zero = any(_stands_on_zero(shape.line.field) for shape in shapes)
    values = [value for shape in shapes for _, value in (*shape.tops, *(shape.bottoms if zero else ()))]
    return value_axis(value_scale(values, field, zero=zero), field, height=height - BELOW - 6, right=right)


def _stands_on_zero(field: Field) -> bool:
    return field.custom.draw_style == "bars" or field.custom.stacking.mode != "none"


def _draw_shapes(canvas: Canvas, plot: Box, shapes: Sequence[Shape], *, axis: ValueAxis, window: Window) -> None:
    for shape in shapes:
        custom = shape.line.field.custom
        if custom.draw_style == "bars":
            _draw_bars(canvas, plot, shape, axis=axis, window=window)
            continue
        for tops, bottoms in _segments(shape):
            upper = [_pixel(point, plot, axis, window) for point in _interpolated(tops, custom.line_interpolation)]
            lower = [_pixel(point, plot, axis, window) for point in _interpolated(bottoms, custom.line_interpolation)]
            _draw_segment(canvas, plot, shape.line, upper=upper, lower=lower)


def _pixel(point: Point, plot: Box, axis: ValueAxis, window: Window) -> Point:
    moment, value = point
    return time_x(moment, plot, window), axis.scale.y(value, plot)


def _segments(shape: Shape) -> Iterator[tuple[Sequence[Point], Sequence[Point]]]:
    """The parts between gaps."""
    allowed = shape.line.field.custom.span_nulls
    longest = float("inf") if allowed is True else max(shape.line.step * _MISSING, allowed / 1000)
    ends = [
        place + 1 for place, ((before, _), (after, _)) in enumerate(pairwise(shape.tops)) if after - before > longest
    ]
    for start, end in pairwise((0, *ends, len(shape.tops))):
        yield shape.tops[start:end], shape.bottoms[start:end]


def _interpolated(points: Sequence[Point], interpolation: str) -> list[Point]:
    """With the corners of steps; a smooth line is drawn straight."""
    if not interpolation.startswith("step"):
        return list(points)
    found = [points[0]]
    for (before, value), (after, next_value) in pairwise(points):
        found += [(after, value) if interpolation == "stepAfter" else (before, next_value), (after, next_value)]
    return found


def _draw_segment(canvas: Canvas, plot: Box, line: Line, *, upper: list[Point], lower: list[Point]) -> None:
    custom = line.field.custom
    if len(upper) == 1 or custom.show_points == "always":
        canvas.dots(upper, line.color)
    if custom.fill_opacity and len(upper) > 1:
        canvas.polygon([*upper, *reversed(lower)], line.color, alpha=custom.fill_opacity / 100, clip=plot)
    if custom.line_width and custom.draw_style != "points":
        dashes = _DASHES.get(custom.line_style.fill, ())
        canvas.line(upper, Stroke(line.color, custom.line_width + 0.4, dashes), clip=plot.inset(top=-2, bottom=-2))


def _draw_bars(canvas: Canvas, plot: Box, shape: Shape, *, axis: ValueAxis, window: Window) -> None:
    """Around their time, or before or after it."""
    custom = shape.line.field.custom
    room = shape.line.step / window.seconds * plot.width
    width = max(room * _BAR, 1)
    opacity = (80 if custom.fill_opacity is None else custom.fill_opacity) / 100
    for top, bottom in zip(shape.tops, shape.bottoms, strict=True):
        across, high = _pixel(top, plot, axis, window)
        _, low = _pixel(bottom, plot, axis, window)
        left = max(across + custom.bar_alignment * room / 2 - width / 2, plot.left)
        right = min(across + custom.bar_alignment * room / 2 + width / 2, plot.right)
        if right > left and high != low:
            bar = Box(left, min(high, low), right - left, abs(low - high))
            canvas.rectangle(bar, shape.line.color, alpha=max(opacity, 0.05))


def draw_thresholds(canvas: Canvas, plot: Box, field: Field, *, axis: ValueAxis) -> None:
    """Lines, and areas from each to the next, as far as the plot shows them."""
    mode, scale = field.custom.thresholds_style.mode, axis.scale
    limits = field.limits([scale.low, scale.high])
    for place, (step, start) in enumerate(limits):
        color = field.threshold_color(start, among=[scale.low, scale.high])
        if "area" in mode:
            end = limits[place + 1][1] if place + 1 < len(limits) else scale.high
            top, bottom = (scale.y(min(max(value, scale.low), scale.high), plot) for value in (end, start))
            canvas.rectangle(Box(plot.left, top, plot.width, bottom - top), color, alpha=0.1)
        if mode.startswith(("line", "dashed")) and step.value is not None and scale.low <= start <= scale.high:
            height = scale.y(start, plot)
            dashes = (8.0, 6.0) if mode.startswith("dashed") else ()
            canvas.line([(plot.left, height), (plot.right, height)], Stroke(color, 1.6, dashes))
