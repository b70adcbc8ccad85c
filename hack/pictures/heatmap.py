"""How many observations fell into each bucket of a Prometheus histogram, over time."""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import matplotlib as mpl
from matplotlib.colors import to_hex

from hack.pictures import theme
from hack.pictures.axes import BELOW, BESIDE, draw_time_axis, time_x
from hack.pictures.canvas import FAINT, Box, Canvas, text_width
from hack.pictures.fields import Field
from hack.pictures.frames import Filled, series_name
from hack.pictures.overrides import field_of

_KEY: Final = 30.0
_BETWEEN_LABELS: Final = 18.0
_WIDE: Final = 4
"""Pixels of a cell that can do without one of them, as a gap."""
_SHADES: Final = 64
_LIGHTEST: Final = 0.2
"""Of a scheme, so that few observations still stand out from none."""


class Row(NamedTuple):
    """A bucket: the text of its upper bound, and its counts by time."""

    label: str
    counts: Mapping[float, float]


def draw_heatmap(canvas: Canvas, box: Box, filled: Filled) -> None:
    """The panel's content; the lowest bucket is at the bottom."""
    field = _axis_field(filled)
    rows = rows_of(filled, field)
    highest = max((count for row in rows for count in row.counts.values()), default=0.0)
    labels = max(text_width(row.label, theme.SMALL_SIZE) for row in rows)
    plot = box.inset(left=labels + 10, right=BESIDE, top=4, bottom=BELOW + _KEY)
    draw_time_axis(canvas, plot, filled.window)
    colors = _colors(str(filled.panel.options.color.get("scheme", "Oranges")))
    _draw_cells(canvas, plot, rows, filled=filled, colors=colors)
    _draw_labels(canvas, plot, rows)
    _draw_key(canvas, box, highest, field=Field(unit=filled.panel.options.cell_values.get("unit", "")), colors=colors)


def _axis_field(filled: Filled) -> Field:
    """How the bounds are shown."""
    unit = filled.panel.options.y_axis.get("unit") or field_of(filled.panel).unit
    return Field(unit=unit, decimals=filled.panel.options.y_axis.get("decimals"))


def rows_of(filled: Filled, field: Field) -> list[Row]:
    """The buckets, rising; Prometheus counts in each what is in the smaller ones too, which is taken off."""
    named = [(frame, series) for frame in filled.frames for series in frame.series]
    if not all("le" in series.labels for _, series in named):
        return [
            Row(series_name(frame.target.legend_format, series.labels, otherwise=frame.query), dict(series.points))
            for frame, series in named
        ]
    bounds = sorted(named, key=lambda pair: float(pair[1].labels["le"]))
    rows, below = [], dict[float, float]()
    for frame, series in bounds:
        bound, counts = float(series.labels["le"]), dict(series.points)
        own = {t: max(count - below.get(t, 0.0), 0.0) for t, count in counts.items() if not math.isnan(count)}
        rows.append(
            Row("+Inf" if math.isinf(bound) else field.text(bound), own if frame.target.format == "heatmap" else counts)
        )
        below = counts
    return rows


def _colors(scheme: str) -> list[str]:
    """From the darkest, for few, to the brightest: the way round that suits a dark panel."""
    known = scheme if scheme in mpl.colormaps else "Oranges"
    shades = mpl.colormaps[known].reversed()
    parts = (_LIGHTEST + (1 - _LIGHTEST) * number / (_SHADES - 1) for number in range(_SHADES))
    return [to_hex(shades(part)) for part in parts]


def _shade(count: float, highest: float, colors: Sequence[str]) -> str:
    """By the root of the count, which makes rare observations visible, as Grafana's default exponent does."""
    return colors[round(math.sqrt(min(count / highest, 1.0)) * (len(colors) - 1))]


def _draw_cells(canvas: Canvas, plot: Box, rows: Sequence[Row], *, filled: Filled, colors: Sequence[str]) -> None:
    window = filled.window
    step = max((frame.window.step for frame in filled.frames), default=window.step)
    least = float(filled.panel.options.filter_values.get("le", 1e-9))
    highest = max((count for row in rows for count in row.counts.values()), default=0.0)
    gap = 1 if step / window.seconds * plot.width >= _WIDE else 0
    boxes, shades = [], []
    for place, row in zip(reversed(plot.cells(1, len(rows), gap=0)), rows, strict=True):
        for moment, count in row.counts.items():
            left, right = (round(time_x(max(t, window.start), plot, window)) for t in (moment - step, moment))
            if count > least and right > left:
                boxes.append(Box(left, place.top, right - left - gap, place.height - 1))
                shades.append(_shade(count, highest, colors))
    if boxes:
        canvas.mosaic(boxes, shades)


def _draw_labels(canvas: Canvas, plot: Box, rows: Sequence[Row]) -> None:
    """Upper bounds at the upper edges; where they would touch, only some."""
    every = math.ceil(_BETWEEN_LABELS * len(rows) / max(plot.height, 1))
    for number, (place, row) in enumerate(zip(reversed(plot.cells(1, len(rows), gap=0)), rows, strict=True)):
        if number % every == 0:
            canvas.text((plot.left - 8, place.top + min(place.height / 2, 8)), row.label, FAINT, align="right")


def _draw_key(canvas: Canvas, box: Box, highest: float, *, field: Field, colors: Sequence[str]) -> None:
    """Which colour is how many."""
    bar = Box(box.left, box.bottom - 18, 220, 8)
    shades = [_shade(part, _SHADES, colors) for part in range(_SHADES)]
    canvas.mosaic(bar.cells(_SHADES, 1, gap=0), shades)
    text = f"0 to {field.text(highest)}"
    canvas.text((bar.right + 10, bar.center[1]), text, FAINT)
