"""Display settings of a series or column: the panel's defaults plus the overrides that match its name."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from hack.pictures import theme
from hack.pictures.theme import Color
from hack.pictures.units import show


class Coloring(Struct, frozen=True, rename="camel"):
    """The source of a colour."""

    mode: Literal["fixed", "thresholds", "palette-classic"] = "thresholds"
    fixed_color: Color = "text"


class Step(Struct, frozen=True):
    """A colour for values of at least `value`; the first step has no value."""

    color: Color
    value: float | None = None


class Thresholds(Struct, frozen=True):
    """Steps in ascending order."""

    mode: Literal["absolute"] = "absolute"
    steps: tuple[Step, ...] = (Step("green"),)


class State(Struct, frozen=True):
    """The text and colour for a value."""

    text: str
    color: Color


class States(Struct, frozen=True):
    """Value mappings."""

    type: Literal["value"]
    options: Mapping[str, State]


class Mode(Struct, frozen=True):
    """The mode of stacking, or of threshold lines."""

    mode: Literal["none", "normal", "off", "dashed"] = "off"


class CellOptions(Struct, frozen=True):
    """How a table shows a cell."""

    type: Literal["auto", "color-text"] = "auto"


class Custom(Struct, frozen=True, rename="camel"):
    """Settings that only some panel types have."""

    stacking: Mode = Mode()
    thresholds_style: Mode = Mode()
    draw_style: Literal["line", "bars"] = "line"
    line_interpolation: Literal["linear"] = "linear"
    line_width: float = 1
    fill_opacity: float = 0
    axis_soft_min: float | None = None
    """The axis begins there, unless a value is lower."""
    cell_options: CellOptions = CellOptions()


class Field(Struct, frozen=True, rename="camel"):
    """The display settings of a series."""

    unit: str = ""
    min: Literal[0] = 0
    decimals: int | None = None
    thresholds: Thresholds = Thresholds()
    color: Coloring = Coloring()
    mappings: tuple[States, ...] = ()
    no_value: str = "No data"
    custom: Custom = Custom()

    def __post_init__(self) -> None:
        show(0, self.unit)  # raises

    def text(self, value: float, *, digits: int = 3) -> str:
        """The mapped text of the value, else the value with its unit."""
        state = self._state(value)
        return state.text if state else show(value, self.unit, decimals=self.decimals, digits=digits)

    def color_of(self, value: float, *, place: int = 0) -> str:
        """The colour of `value` in the series with index `place`."""
        if state := self._state(value):
            return theme.NAMED[state.color]
        if self.color.mode == "palette-classic":
            return theme.CLASSIC[place % len(theme.CLASSIC)]
        if self.color.mode == "fixed":
            return theme.NAMED[self.color.fixed_color]
        reached = [step.color for step in self.thresholds.steps if step.value is None or value >= step.value]
        return theme.NAMED[reached[-1]]

    def _state(self, value: float) -> State | None:
        return next((each.options[f"{value:g}"] for each in self.mappings if f"{value:g}" in each.options), None)


class Matcher(Struct, frozen=True):
    """Selects the fields of an override, by name or by regular expression."""

    id: Literal["byName", "byRegexp"]
    options: str

    def applies(self, name: str) -> bool:
        """Whether the matcher selects the field `name`."""
        return name == self.options if self.id == "byName" else bool(re.search(self.options.strip("/"), name))


class Property(Struct, frozen=True):
    """A path in the field configuration and its new value."""

    id: Literal["unit", "decimals", "noValue", "thresholds", "color", "custom.cellOptions", "links"]
    value: Any


class Override(Struct, frozen=True):
    """Changed settings for some fields."""

    matcher: Matcher
    properties: tuple[Property, ...]


class FieldConfig(Struct, frozen=True):
    """The display settings of a panel; `defaults` stay raw JSON, because overrides change them by path."""

    defaults: Mapping[str, Any] = {}
    overrides: tuple[Override, ...] = ()

    def __post_init__(self) -> None:
        for overrides in (
            [],
            *([each] for each in self.overrides),
        ):  # each alone, so that none hides the error of another
            self._changed(overrides)

    def of(self, name: str = "") -> Field:
        """The settings of the series or column `name`."""
        return self._changed([override for override in self.overrides if override.matcher.applies(name)])

    def _changed(self, overrides: Sequence[Override]) -> Field:
        raw = self.defaults
        for change in (change for override in overrides for change in override.properties):
            raw = _with(raw, change.id, change.value)
        return msgspec.convert(raw, Field)


def _with(raw: Mapping[str, Any], path: str, value: object) -> Mapping[str, Any]:
    key, _, rest = path.partition(".")
    return {**raw, key: _with(raw.get(key, {}), rest, value) if rest else value}
