"""Scales, the ticks that are read on them, and how both are drawn around a plot."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count as count_up
from typing import Final, NamedTuple

from hack.pictures import theme
from hack.pictures.canvas import FAINT, Align, Box, Canvas, Stroke, text_width
from hack.pictures.durations import DAY, MINUTE, UNITS, nice
from hack.pictures.fields import Field
from hack.pictures.variables import Window

_BETWEEN_ROWS: Final = 34.0
"""Pixels between two values on an upright axis, at least; more than a line of text needs, to keep the plot quiet."""
_BETWEEN_TIMES: Final = 74.0
_BETWEEN_DATES: Final = 110.0
BESIDE: Final = 20.0
"""Pixels that the first and the last time may reach beyond the plot."""
BELOW: Final = 22.0
"""Pixels that the times take below it."""
_PADDING: Final = 0.1
_GAP: Final = 8.0
_FINE: Final = (6, 9, 12)
"""Digits that tell apart neighbouring ticks, such as 10.25 K and 10.5 K, as few as do."""
_PLAIN: Final = Field()


class Scale(NamedTuple):
    """From `low` to `high`; with a base it is logarithmic, else linear."""

    low: float
    high: float
    base: float = 0

    def share(self, value: float) -> float:
        """How much of the way from low to high the value lies."""
        if not self.base:
            return (value - self.low) / (self.high - self.low)
        low, high = math.log(self.low), math.log(self.high)
        return (math.log(max(value, self.low)) - low) / (high - low)

    def y(self, value: float, box: Box) -> float:
        """The pixel in the box."""
        return box.bottom - self.share(value) * box.height


def value_scale(values: Sequence[float], field: Field, *, zero: bool = False) -> Scale:
    """Room for all values and some more, but across zero only when they are; `zero` must be in it for areas."""
    custom = field.custom
    soft = [bound for bound in (custom.axis_soft_min, custom.axis_soft_max, 0.0 if zero else None) if bound is not None]
    low, high = min(*values, *soft, math.inf), max(*values, *soft, -math.inf)
    padding = (high - low) * _PADDING or abs(high) or 1.0
    padded_low = low - padding if low < 0 else max(low - padding, 0.0)
    padded_high = high + padding if high > 0 or low == high else min(high + padding, 0.0)
    bottom = padded_low if field.min is None else field.min
    top = padded_high if field.max is None else field.max
    if custom.scale_distribution.type == "log" and high > 0:
        positive = min((value for value in values if value > 0), default=1.0)
        return Scale(bottom if bottom > 0 else positive / 2, top, custom.scale_distribution.log)
    return Scale(bottom, top if top > bottom else bottom + 1)


def ticks(scale: Scale, *, count: float, field: Field = _PLAIN) -> list[float]:
    """Values that a person would choose to mark, some `count` of them, each as exact as the field's decimals allow."""
    if scale.base:
        first, last = (math.log(bound, scale.base) for bound in scale[:2])
        every = max(1, math.ceil((last - first) / max(count, 1)))
        return [scale.base**power for power in range(math.ceil(first), math.floor(last) + 1, every)]
    step = _tick_step((scale.high - scale.low) / max(count, 1), field)
    first_tick = math.ceil(scale.low / step - 1e-9)
    return [number * step for number in range(first_tick, math.floor(scale.high / step + 1e-9) + 1)]


def _tick_step(at_least: float, field: Field) -> float:
    unit = field.unit
    if unit in UNITS and at_least * UNITS[unit] >= 1:
        return nice(at_least * UNITS[unit]) / UNITS[unit]
    if unit in ("bytes", "binBps"):
        return float(2 ** max(math.ceil(math.log2(at_least)), 0))
    power = math.floor(math.log10(at_least))
    steps = (number * 10.0**exponent for exponent in count_up(power) for number in (1, 2, 2.5, 5))
    return next(step for step in steps if step >= at_least * (1 - 1e-9) and _is_exact(step, field))


def _is_exact(step: float, field: Field) -> bool:
    if field.decimals is None or field.unit in UNITS:
        return True
    shown = step * 10.0**field.decimals * (100 if field.unit == "percentunit" else 1)
    return math.isclose(shown, round(shown), rel_tol=1e-6)


class ValueAxis(NamedTuple):
    """An upright axis with its labels, at the left or the right of a plot."""

    scale: Scale
    field: Field
    ticks: tuple[float, ...]
    right: bool = False

    @property
    def labels(self) -> list[str]:
        """What is written at the ticks."""
        texts = [[self.field.text(tick, digits=digits) for tick in self.ticks] for digits in _FINE]
        return next((each for each in texts if len(set(each)) == len(self.ticks)), texts[-1])

    @property
    def width(self) -> float:
        """Pixels that the labels need."""
        title = theme.SMALL_SIZE * 1.6 if self.field.custom.axis_label else 0
        return max((text_width(label, theme.SMALL_SIZE) for label in self.labels), default=0) + _GAP + title

    def draw(self, canvas: Canvas, plot: Box) -> None:
        """Labels and, from an axis on the left, lines through the plot."""
        edge = plot.right + _GAP if self.right else plot.left - _GAP
        align: Align = "left" if self.right else "right"
        for tick, label in zip(self.ticks, self.labels, strict=True):
            height = self.scale.y(tick, plot)
            if not self.right:
                canvas.line([(plot.left, height), (plot.right, height)], Stroke(theme.GRID))
            canvas.text((edge, height), label, FAINT, align=align)
        if title := self.field.custom.axis_label:
            across = plot.right + self.width - _GAP if self.right else plot.left - self.width + _GAP
            canvas.text((across, plot.center[1]), title, FAINT, align="center", upwards=True)


def value_axis(scale: Scale, field: Field, *, height: float, right: bool = False) -> ValueAxis:
    """An axis with as many ticks as go well in a plot of that height."""
    marks = ticks(scale, count=max(height / _BETWEEN_ROWS, 2), field=field)
    return ValueAxis(scale, field, tuple(marks), right)


def draw_time_axis(canvas: Canvas, plot: Box, window: Window) -> None:
    """Times (UTC) below the plot, and lines through it."""
    step = nice(window.seconds / max(plot.width / _BETWEEN_TIMES, 1))
    if step < DAY < window.seconds:  # then labels have both date and time
        step = nice(window.seconds / max(plot.width / _BETWEEN_DATES, 1))
    marks = ticks(Scale(window.start / step, window.end / step), count=window.seconds / step)
    for mark in (mark * step for mark in marks):
        across = time_x(mark, plot, window)
        canvas.line([(across, plot.top), (across, plot.bottom)], Stroke(theme.GRID))
        label = _time_label(mark, step=step, seconds=window.seconds)
        half = text_width(label, theme.SMALL_SIZE) / 2
        middle = min(max(across, plot.left + half - BESIDE), plot.right - half + BESIDE)
        canvas.text((middle, plot.bottom + theme.SMALL_SIZE + 2), label, FAINT, align="center")


def time_x(moment: float, plot: Box, window: Window) -> float:
    """The pixel in the plot."""
    return plot.left + (moment - window.start) / window.seconds * plot.width


def _time_label(moment: float, *, step: float, seconds: float) -> str:
    if step >= DAY:
        form = "%m/%d" if seconds <= 365 * DAY else "%Y-%m"
    elif seconds > DAY:
        form = "%m/%d %H:%M"
    else:
        form = "%H:%M:%S" if step < MINUTE else "%H:%M"
    return datetime.fromtimestamp(moment, UTC).strftime(form)
