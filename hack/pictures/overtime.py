"""Draws panels over time: time series, state timelines and heatmaps."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import matplotlib as mpl
from matplotlib.colors import to_hex

from hack.pictures import around, theme
from hack.pictures.canvas import FAINT, TEXT, Box, Canvas, Point, shortened, text_width
from hack.pictures.frames import CALCS, Filled, Line
from hack.pictures.variables import Window

_MISSING: Final = 1.5
"""Steps without a point that make a gap in a line or state."""
_ABOVE: Final = 6.0
_NAMES: Final = 0.25
"""Maximum share of the width."""
_KEY: Final = 30.0
_BETWEEN_LABELS: Final = 18.0
_WIDE: Final = 4
"""Minimum cell width in pixels for a one-pixel gap between cells."""
_SHADES: Final = 64
_LIGHTEST: Final = 0.2
"""Start of the colour scheme, so that few observations still differ from none."""

Span = tuple[float, float, float]
"""A time, and the bottom and top of the area below a line at that time."""


def draw_timeseries(canvas: Canvas, box: Box, filled: Filled) -> None:
    """Draw the panel content. Raises: ValueError if the series have several units, which would need several axes."""
    lines = [line for line in filled.lines() if line.points]
    if len({line.field.unit for line in lines}) > 1:
        raise ValueError(f"{filled.panel.title}: series of several units are not drawn")
    plot = around.draw_legend(canvas, box, [_entry(line, filled.panel.options.legend.calcs) for line in lines])
    areas, field = stacked(lines), lines[0].field
    from_zero = field.custom.stacking.mode == "normal"
    values = [value for area in areas for _, bottom, top in area for value in ((bottom, top) if from_zero else (top,))]
    values += [] if field.custom.axis_soft_min is None else [field.custom.axis_soft_min]
    axis = around.value_axis(values, field, height=plot.height - around.BELOW - _ABOVE)
    plot = plot.inset(left=axis.width, right=around.BESIDE, top=_ABOVE, bottom=around.BELOW)
    around.draw_time_axis(canvas, plot, filled.window)
    axis.draw(canvas, plot)
    for line, area in zip(lines, areas, strict=True):
        _draw_area(canvas, plot, area, line=line, axis=axis, window=filled.window)
    if field.custom.thresholds_style.mode == "dashed":
        _draw_thresholds(canvas, plot, axis)


def _entry(line: Line, calcs: Iterable[str]) -> around.Entry:
    values = ((title, line.field.text(reduce(line.values))) for title, reduce in map(CALCS.__getitem__, calcs))
    return line.name, line.color, list(values)


def stacked(lines: Iterable[Line]) -> list[list[Span]]:
    """The areas below the lines: stacked in order if the field says so, else from zero."""
    tops: dict[float, float] = defaultdict(float)
    areas = []
    for line in lines:
        bottoms = tops if line.field.custom.stacking.mode == "normal" else defaultdict(float)
        areas.append([(moment, bottoms[moment], bottoms[moment] + value) for moment, value in line.points])
        tops |= {moment: top for moment, _, top in areas[-1]}
    return areas


def _draw_area(
    canvas: Canvas, plot: Box, area: Sequence[Span], *, line: Line, axis: around.ValueAxis, window: Window
) -> None:
    """Draw the parts between gaps; a single point is a dot."""
    longest, custom = window.step * _MISSING, line.field.custom
    if custom.draw_style == "bars":
        _draw_bars(canvas, plot, area, line=line, axis=axis, window=window)
        return
    gaps = [place for place, (before, after) in enumerate(pairwise(area), 1) if after[0] - before[0] > longest]
    upper = [(around.time_x(moment, plot, window), axis.y(top, plot)) for moment, _, top in area]
    lower = [(around.time_x(moment, plot, window), axis.y(bottom, plot)) for moment, bottom, _ in area]
    for start, end in pairwise((0, *gaps, len(area))):
        part = upper[start:end]
        if len(part) == 1:
            canvas.circle(part[0], 2, color=line.color)
        elif custom.fill_opacity:
            outline = [*part, *reversed(lower[start:end])]
            canvas.polygon(outline, line.color, alpha=custom.fill_opacity / 100, clip=plot)
        canvas.line(part, line.color, custom.line_width + 0.4, clip=plot.inset(top=-2, bottom=-2))


def _draw_bars(
    canvas: Canvas, plot: Box, area: Sequence[Span], *, line: Line, axis: around.ValueAxis, window: Window
) -> None:
    """Draw a bar for the time before each point."""
    for moment, bottom, top in area:
        left, right = (around.time_x(max(each, window.start), plot, window) for each in (moment - window.step, moment))
        low, high = axis.y(bottom, plot), axis.y(top, plot)
        if top > bottom and right > left:
            bar = Box(left, high, max(1.0, right - left - 1), low - high)
            canvas.rectangle(bar, line.color, alpha=line.field.custom.fill_opacity / 100)


def _draw_thresholds(canvas: Canvas, plot: Box, axis: around.ValueAxis) -> None:
    for step in axis.field.thresholds.steps:
        if step.value is not None and axis.low <= step.value <= axis.high:
            height = axis.y(step.value, plot)
            canvas.line([(plot.left, height), (plot.right, height)], theme.NAMED[step.color], 1.6, dashed=True)


def draw_timeline(canvas: Canvas, box: Box, filled: Filled) -> None:
    """Draw a state timeline."""
    lines, window = [line for line in filled.lines() if line.points], filled.window
    found = {value: line.field for line in lines for value in line.values}
    entries = [(field.text(value), field.color_of(value), ()) for value, field in sorted(found.items())]
    rest = around.draw_list(canvas, box, entries)
    names = min(max(text_width(line.name, TEXT.size) for line in lines), box.width * _NAMES)
    plot = rest.inset(left=names + 10, right=around.BESIDE, bottom=around.BELOW)
    around.draw_time_axis(canvas, plot, window)
    for line, row in zip(lines, plot.cells(1, len(lines), gap=0), strict=True):
        canvas.text((plot.left - 8, row.center[1]), shortened(line.name, TEXT.size, width=names), align="right")
        between = row.height * (1 - filled.panel.options.row_height)
        for value, *span in states(line.points, window.step):
            left, right = (around.time_x(min(max(moment, window.start), window.end), plot, window) for moment in span)
            band = Box(left, row.top + between / 2, right - left, row.height - between)
            canvas.rectangle(band, line.field.color_of(value), alpha=line.field.custom.fill_opacity / 100)


def states(points: Sequence[Point], step: float) -> list[tuple[float, float, float]]:
    """(value, start, end) of each state; a state ends at the next one, or after one step if there is a gap."""
    found: list[tuple[float, float, float]] = []
    for (moment, value), (following, _) in pairwise([*points, (math.inf, 0.0)]):
        end = following if following - moment <= step * _MISSING else moment + step
        start = found.pop()[1] if found and found[-1] == (value, found[-1][1], moment) else moment
        found.append((value, start, end))
    return found


def draw_heatmap(canvas: Canvas, box: Box, filled: Filled) -> None:
    """Draw the bucket counts; the lowest bucket is at the bottom."""
    rows, window = buckets(filled), filled.window
    highest = max((count for _, counts in rows for _, count in counts), default=0.0)
    labels = max(text_width(label, theme.SMALL_SIZE) for label, _ in rows)
    plot = box.inset(left=labels + 10, right=around.BESIDE, top=4, bottom=around.BELOW + _KEY)
    around.draw_time_axis(canvas, plot, window)
    gap = 1 if window.step / window.seconds * plot.width >= _WIDE else 0
    every = math.ceil(_BETWEEN_LABELS * len(rows) / max(plot.height, 1))
    places = reversed(plot.cells(1, len(rows), gap=0))
    for number, ((label, counts), place) in enumerate(zip(rows, places, strict=True)):
        if number % every == 0:  # otherwise the labels would overlap
            canvas.text((plot.left - 8, place.top + min(place.height / 2, 8)), label, FAINT, align="right")
        for moment, count in counts:
            began = max(moment - window.step, window.start)
            left, right = (round(around.time_x(each, plot, window)) for each in (began, moment))
            if count > 0 and right > left:
                canvas.rectangle(Box(left, place.top, right - left - gap, place.height - 1), _shade(count / highest))
    key = Box(box.left, box.bottom - 18, 220, 8)
    for part, cell in enumerate(key.cells(_SHADES, 1, gap=0)):
        canvas.rectangle(cell, _shade(part / _SHADES))
    text = f"0 to {filled.panel.options.cell_values.text(highest)}"
    canvas.text((key.right + 10, key.center[1]), text, FAINT)


def buckets(filled: Filled) -> list[tuple[str, list[Point]]]:
    """Ascending upper bounds with their counts over time, converted from Prometheus' cumulative buckets."""
    series = {float(each.labels["le"]): each for frame in filled.frames for each in frame.series}
    rows, below = [], dict[float, float]()
    for bound, each in sorted(series.items()):
        own = [(moment, max(count - below.get(moment, 0.0), 0.0)) for moment, count in each.points]
        label = "+Inf" if math.isinf(bound) else filled.panel.options.y_axis.text(bound)
        rows.append((label, [point for point in own if not math.isnan(point[1])]))
        below = dict(each.points)
    return rows


def _shade(part: float) -> str:
    """A colour from dark (few) to bright (many), for the dark theme; square-root scale, as in Grafana."""
    return to_hex(mpl.colormaps["Oranges"](1 - _LIGHTEST - (1 - _LIGHTEST) * math.sqrt(part)))
