"""What is read of a dashboard: Grafana's JSON from version 8 on, before the schema `v2`. All else in it is ignored."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct


class Json(Struct, frozen=True, kw_only=True, rename="camel"):
    """An object of the JSON, whose names have humps; what is null or missing there has its default here."""


class GridPos(Json, frozen=True):
    """Place and size on a grid of 24 columns."""

    x: int = 0
    y: int = 0
    w: int = 24
    h: int = 1


class Target(Json, frozen=True):
    """A query."""

    expr: str = ""
    ref_id: str = "A"
    legend_format: str = ""
    format: str = "time_series"
    instant: bool = False
    range: bool = False
    interval: str = ""
    hide: bool = False


class Matcher(Json, frozen=True):
    """Which fields an override is for."""

    id: str
    options: Any = None


class Property(Json, frozen=True):
    """A path in the field's configuration, and what is there instead."""

    id: str
    value: Any = None


class Override(Json, frozen=True):
    """What is different for some fields."""

    matcher: Matcher
    properties: tuple[Property, ...] = ()


class FieldConfig(Json, frozen=True):
    """How values are shown; `defaults` stay raw, because overrides change them by path."""

    defaults: Mapping[str, Any] = {}
    overrides: tuple[Override, ...] = ()


class Legend(Json, frozen=True):
    """Where a legend is and what it tells of each series."""

    show_legend: bool = True
    display_mode: str = "list"
    placement: str = "bottom"
    calcs: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    sort_by: str = ""
    sort_desc: bool = False


class ReduceOptions(Json, frozen=True):
    """How a series becomes one value."""

    calcs: tuple[str, ...] = ("lastNotNull",)
    values: bool = False
    fields: str = ""


class Sort(Json, frozen=True):
    """A column to sort by, named as the transformation or as the panel names it."""

    field: str = ""
    display_name: str = ""
    desc: bool = False


class Options(Json, frozen=True):
    """Of all panel types together: a panel has those of its own, and the defaults of the others."""

    legend: Legend = Legend()
    reduce_options: ReduceOptions = ReduceOptions()
    text_mode: str = "auto"
    color_mode: str = "value"
    graph_mode: str = "area"
    justify_mode: str = "auto"
    orientation: str = "auto"
    display_mode: str = "gradient"
    display_labels: tuple[str, ...] = ()
    pie_type: str = "pie"
    stacking: str = "none"
    show_value: str = "auto"
    x_field: str = ""
    merge_values: bool = True
    row_height: float = 0.9
    show_header: bool = True
    sort_by: tuple[Sort, ...] = ()
    content: str = ""
    color: Mapping[str, Any] = {}
    y_axis: Mapping[str, Any] = {}
    cell_values: Mapping[str, Any] = {}
    filter_values: Mapping[str, Any] = {}


class Transformation(Json, frozen=True):
    """A step between queries and picture."""

    id: str
    options: Mapping[str, Any] = {}
    disabled: bool = False


class Panel(Json, frozen=True):
    """A panel, or a row with the panels that it hides while it is collapsed."""

    type: str
    title: str = ""
    description: str = ""
    grid_pos: GridPos = GridPos()
    targets: tuple[Target, ...] = ()
    field_config: FieldConfig = FieldConfig()
    options: Options = Options()
    transformations: tuple[Transformation, ...] = ()
    interval: str = ""
    max_data_points: int | None = None
    time_from: str = ""
    collapsed: bool = False
    panels: tuple["Panel", ...] = ()

    @property
    def queries(self) -> tuple[Target, ...]:
        """The targets that are shown."""
        return tuple(target for target in self.targets if target.expr and not target.hide)


class Variable(Json, frozen=True):
    """A choice at the top of the dashboard."""

    name: str
    type: str = "query"
    label: str = ""
    query: Any = ""
    all_value: str = ""
    include_all: bool = False
    current: Mapping[str, Any] = {}
    hide: int = 0


class Templating(Json, frozen=True):
    """The variables."""

    list: tuple[Variable, ...] = ()


class Time(Json, frozen=True):
    """The range of time shown first, such as `now-24h` to `now`."""

    from_: str = msgspec.field(default="now-6h", name="from")


class Dashboard(Json, frozen=True):
    """A dashboard."""

    title: str = ""
    time: Time = Time()
    templating: Templating = Templating()
    panels: tuple[Panel, ...] = ()

    def in_order(self) -> list[Panel]:
        """The panels from top to bottom."""
        return sorted(self.panels, key=lambda each: (each.grid_pos.y, each.grid_pos.x))

    def all_panels(self) -> Iterator[Panel]:
        """In that order, each row followed by the panels that it hides."""
        for panel in self.in_order():
            yield panel
            yield from panel.panels


def read(path: Path) -> Dashboard:
    """The dashboard in that file. Raises: msgspec.DecodeError, which names the place that is not as it must be."""
    return parse(msgspec.json.decode(path.read_bytes()))


def parse(raw: Any) -> Dashboard:  # noqa: ANN401 - JSON
    """The dashboard of decoded JSON, which may be the answer of Grafana's API. Raises: msgspec.ValidationError."""
    return msgspec.convert(cleaned(raw.get("dashboard", raw)), Dashboard, strict=False)


def cleaned(raw: Any) -> Any:  # noqa: ANN401 - JSON
    """The same without the keys that say nothing: null, and what is empty, at times of a wrong type."""
    if isinstance(raw, dict):
        return {key: cleaned(value) for key, value in raw.items() if value not in (None, [], "")}
    return [cleaned(value) for value in raw] if isinstance(raw, list) else raw
