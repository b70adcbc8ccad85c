"""How the values of a series or column are shown."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hack.pictures import theme
from hack.pictures.dashboard import Json
from hack.pictures.patterns import matcher
from hack.pictures.units import Reading, show


class Color(Json, frozen=True):
    """Where a colour comes from."""

    mode: str = ""
    fixed_color: str = "text"


class Step(Json, frozen=True):
    """A colour from a value on; the first has none."""

    color: str = "green"
    value: float | None = None


class Thresholds(Json, frozen=True):
    """Steps, rising; in percent they are parts of the way from min to max."""

    mode: str = "absolute"
    steps: tuple[Step, ...] = (Step(), Step(color="red", value=80))


class Stacking(Json, frozen=True):
    """`none`, `normal` or `percent`."""

    mode: str = "none"


class Mode(Json, frozen=True):
    """Of the lines of thresholds: `off`, `line`, `dashed`, `area` and combinations."""

    mode: str = "off"


class CellOptions(Json, frozen=True):
    """How a table shows a cell."""

    type: str = "auto"


class Hidden(Json, frozen=True):
    """From where a series is kept."""

    viz: bool = False
    legend: bool = False


class LineStyle(Json, frozen=True):
    """`solid`, `dash` or `dot`."""

    fill: str = "solid"


class ScaleDistribution(Json, frozen=True):
    """`linear`, or `log` to the base `log`."""

    type: str = "linear"
    log: float = 10


class Custom(Json, frozen=True):
    """What only some panel types know."""

    stacking: Stacking = Stacking()
    thresholds_style: Mode = Mode()
    draw_style: str = "line"
    line_interpolation: str = "linear"
    line_style: LineStyle = LineStyle()
    line_width: float = 1
    fill_opacity: float | None = None
    bar_alignment: int = 0
    span_nulls: bool | float = False
    show_points: str = "auto"
    axis_placement: str = "auto"
    axis_label: str = ""
    axis_soft_min: float | None = None
    axis_soft_max: float | None = None
    scale_distribution: ScaleDistribution = ScaleDistribution()
    transform: str = ""
    hide_from: Hidden = Hidden()
    hidden: bool = False
    cell_options: CellOptions = CellOptions()
    display_mode: str = "auto"
    align: str = "auto"
    width: float | None = None

    @property
    def cell(self) -> str:
        """The type of cell, which older dashboards call its display mode."""
        return self.cell_options.type if self.cell_options.type != "auto" else self.display_mode


class Field(Json, frozen=True):
    """What is said of a series."""

    unit: str = ""
    min: float | None = None
    max: float | None = None
    decimals: int | None = None
    thresholds: Thresholds = Thresholds()
    color: Color = Color()
    mappings: tuple[Mapping[str, Any], ...] = ()
    no_value: str = ""
    display_name: str = ""
    custom: Custom = Custom()

    def text(self, value: float, *, now: float = 0.0, digits: int = 3) -> str:
        """What the value is mapped to, else the value with its unit."""
        mapped = self.mapped(value)
        return mapped.get("text") or show(value, self.unit, Reading(self.decimals, digits, now))

    def mapped(self, value: float | str) -> Mapping[str, Any]:
        """The `text` and `color` of the first mapping for the value, or nothing."""
        return next((found for mapping in self.mappings if (found := _result(mapping, value))), {})

    def between(self, values: Sequence[float]) -> tuple[float, float]:
        """The range that the value is a part of: min and max, a share's 0 to 1, else that of the `values`."""
        whole = {"percentunit": 1.0, "percent": 100.0}.get(self.unit)
        low = self.min if self.min is not None else 0.0 if whole else min(values, default=0.0)
        high = self.max if self.max is not None else whole or max(values, default=100.0)
        return low, high if high > low else low + 1

    def color_of(self, value: float, *, index: int = 0, among: Sequence[float] = ()) -> str:
        """The colour of a value of the series at `index`, by the values it is `among` where its mode asks."""
        if color := self.mapped(value).get("color"):
            return theme.named(color)
        if self.color.mode in ("fixed", "shades"):
            return theme.named(self.color.fixed_color)
        if self.color.mode == "thresholds":
            return self.threshold_color(value, among=among)
        if not math.isfinite(value):
            return theme.TEXT
        if self.color.mode.startswith("continuous-"):
            low, high = self.between(among or [value])
            names = theme.CONTINUOUS.get(self.color.mode.removeprefix("continuous-"), ("green", "red"))
            return theme.blended([theme.named(name) for name in names], (value - low) / (high - low))
        return theme.CLASSIC[index % len(theme.CLASSIC)]

    def threshold_color(self, value: float, *, among: Sequence[float] = ()) -> str:
        """The colour of the last threshold that the value reaches."""
        reached = [step for step, start in self.limits(among or [value]) if value >= start]
        return theme.named(reached[-1].color if reached else "text")

    def limits(self, among: Sequence[float]) -> list[tuple[Step, float]]:
        """The thresholds with the values at which they start; the first starts at the beginning of the world."""
        low, high = self.between(among)
        scale = (high - low) / 100 if self.thresholds.mode == "percentage" else 0
        starts = [-math.inf if step.value is None else step.value for step in self.thresholds.steps]
        return [
            (step, low + start * scale if scale else start)
            for step, start in zip(self.thresholds.steps, starts, strict=True)
        ]


def _result(mapping: Mapping[str, Any], value: float | str) -> Mapping[str, Any]:
    options: Mapping[str, Any] = mapping.get("options", {})
    if mapping.get("type") == "value":
        one: Mapping[str, Any] = options.get(value if isinstance(value, str) else f"{value:g}", {})
        return one
    result: Mapping[str, Any] = options.get("result", {})
    return result if _is_meant(mapping.get("type"), options, value) else {}


def _is_meant(kind: str | None, options: Mapping[str, Any], value: float | str) -> bool:
    match kind:
        case "range":
            return not isinstance(value, str) and options.get("from", -math.inf) <= value <= options.get("to", math.inf)
        case "regex":
            return bool(matcher(options.get("pattern", ""))(str(value)))
        case "special":
            return value == "" or (isinstance(value, float) and math.isnan(value))
    return False
