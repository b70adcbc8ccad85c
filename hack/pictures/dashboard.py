"""The parts of a dashboard that are drawn. These fields are validated; all others have no visible effect."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from hack.pictures.fields import Field, FieldConfig


class GridPos(Struct, frozen=True):
    """Position and size on the 24-column grid."""

    x: int = 0
    y: int = 0
    w: int = 24
    h: int = 1


class Target(Struct, frozen=True, rename="camel"):
    """A query."""

    expr: str
    ref_id: str = "A"
    legend_format: str = "__auto"
    instant: bool = False
    interval: None = None


class Legend(Struct, frozen=True, rename="camel"):
    """The legend below a plot."""

    display_mode: Literal["list", "table"] = "list"
    placement: Literal["bottom"] = "bottom"
    calcs: tuple[Literal["lastNotNull", "mean", "max", "sum"], ...] = ()


class ReduceOptions(Struct, frozen=True):
    """How a series becomes one value."""

    calcs: tuple[Literal["lastNotNull"], ...] = ()


class Sort(Struct, frozen=True, rename="camel"):
    """A column to sort by."""

    display_name: str
    desc: bool = False


class Options(Struct, frozen=True, rename="camel"):
    """The options of all panel types together; options of other types have their defaults."""

    legend: Legend = Legend()
    reduce_options: ReduceOptions = ReduceOptions()
    text_mode: Literal["auto"] = "auto"
    color_mode: Literal["value"] = "value"
    graph_mode: Literal["none", "area"] = "none"
    orientation: Literal["auto", "horizontal"] = "auto"
    display_mode: Literal["basic"] = "basic"
    show_value: Literal["never"] = "never"
    row_height: float = 0.9
    sort_by: tuple[Sort, ...] = ()
    y_axis: Field = Field()
    cell_values: Field = Field()


class Transformation(Struct, frozen=True):
    """A step between queries and table."""

    id: Literal["merge", "organize"]
    options: Mapping[str, Any] = {}


class Panel(Struct, frozen=True, rename="camel"):
    """A panel, or a row header above the panels that follow."""

    type: Literal["row", "timeseries", "stat", "bargauge", "heatmap", "state-timeline", "table"]
    title: Annotated[str, Meta(pattern=r"^[^$]*$")] = ""
    grid_pos: GridPos = GridPos()
    targets: tuple[Target, ...] = ()
    field_config: FieldConfig = FieldConfig()
    options: Options = Options()
    transformations: tuple[Transformation, ...] = ()
    interval: str | None = None
    """The minimum step between points."""
    time_from: None = None
    max_data_points: None = None
    panels: tuple[()] = ()
    """The panels of a collapsed row."""


class Variable(Struct, frozen=True, rename="camel"):
    """A dashboard variable."""

    name: str
    type: Literal["datasource", "query", "custom"]
    label: str
    hide: Literal[0] = 0
    all_value: str = ""
    current: Mapping[str, Any] = {}


class Templating(Struct, frozen=True):
    """The variables."""

    list: tuple[Variable, ...] = ()


class Dashboard(Struct, frozen=True):
    """A dashboard."""

    title: str
    time: Mapping[str, str]
    """The default time range, such as `now-24h` for `from`."""
    templating: Templating = Templating()
    panels: tuple[Panel, ...] = ()

    def all_panels(self) -> list[Panel]:
        """All panels, from top to bottom."""
        return sorted(self.panels, key=lambda each: (each.grid_pos.y, each.grid_pos.x))


def read(path: Path) -> Dashboard:
    """Read the dashboard in `path`. Raises: ValueError with the path of the invalid field."""
    return msgspec.json.decode(path.read_bytes(), type=Dashboard)
