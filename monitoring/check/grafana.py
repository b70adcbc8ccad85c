"""The fields of Grafana's dashboards that are checked here; `schema` knows all of them."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct


class DataSource(Struct, frozen=True):
    """Where a panel or variable asks."""

    type: str = ""
    uid: str = ""


class Link(Struct, frozen=True):
    """An address that the reader may follow."""

    title: str = ""
    url: str = ""


class Matcher(Struct, frozen=True):
    """Which fields an override is for: `options` is a name, or what else its kind `id` takes."""

    id: str
    options: Any = None


class Property(Struct, frozen=True):
    """What an override sets."""

    id: str
    value: Any = None


class Override(Struct, frozen=True):
    """Other settings for some fields of a panel."""

    matcher: Matcher
    properties: list[Property] = []

    def get(self, name: str) -> Any:  # noqa: ANN401 - JSON
        """The value that it sets for that property, if it does."""
        return next((each.value for each in self.properties if each.id == name), None)


class Defaults(Struct, frozen=True, rename="camel"):
    """Settings for all fields of a panel."""

    unit: str = ""
    no_value: str = ""
    mappings: list[Any] = []
    links: list[Link] = []


class FieldConfig(Struct, frozen=True):
    """How values are shown."""

    defaults: Defaults = Defaults()
    overrides: list[Override] = []


class Target(Struct, frozen=True, rename="camel"):
    """One query of a panel."""

    expr: str = ""
    ref_id: str = ""
    legend_format: str = ""
    format: str = ""
    datasource: DataSource | str | None = None


class Place(Struct, frozen=True):
    """On the grid of 24 columns."""

    x: int = 0
    y: int = 0
    w: int = 0
    h: int = 0


class Transformation(Struct, frozen=True):
    """A step between answer and picture."""

    id: str
    options: dict[str, Any] = {}


class Panel(Struct, frozen=True, rename="camel"):
    """A picture, or a row, which holds panels of its own while it is folded."""

    id: int = 0
    type: str = ""
    title: str = ""
    description: str = ""
    datasource: DataSource | str | None = None
    field_config: FieldConfig = FieldConfig()
    grid_pos: Place = Place()
    links: list[Link] = []
    panels: list["Panel"] = []
    targets: list[Target] = []
    transformations: list[Transformation] = []

    @property
    def place(self) -> str:
        """How problems call it."""
        return f'panel "{self.title}"'

    @property
    def is_picture(self) -> bool:
        """Whether it shows what it asked for."""
        return self.type not in ("row", "text")


class Variable(Struct, frozen=True, rename="camel"):
    """A choice that the reader has."""

    name: str
    type: str = ""
    label: str = ""
    query: str | dict[str, Any] = ""
    refresh: int = 0
    multi: bool = False
    current: dict[str, Any] = {}
    all_value: str = ""
    datasource: DataSource | str | None = None

    @property
    def text(self) -> str:
        """What it asks for."""
        return self.query if isinstance(self.query, str) else str(self.query.get("query", ""))


class Annotation(Struct, frozen=True, rename="camel"):
    """Marks in all graphs where a query has series."""

    name: str = ""
    expr: str = ""
    text_format: str = ""


class Annotations(Struct, frozen=True, rename={"marks": "list"}):
    """All annotations of a dashboard."""

    marks: list[Annotation] = []


class Templating(Struct, frozen=True, rename={"variables": "list"}):
    """The choices in their order."""

    variables: list[Variable] = []


class Dashboard(Struct, frozen=True):
    """All of it."""

    uid: str = ""
    title: str = ""
    editable: bool = True
    links: list[Link] = []
    panels: list[Panel] = []
    templating: Templating = Templating()
    annotations: Annotations = Annotations()

    @property
    def marks(self) -> list[Annotation]:
        """Its annotations."""
        return self.annotations.marks

    @property
    def variables(self) -> list[Variable]:
        """The reader's choices."""
        return self.templating.variables

    @property
    def all_panels(self) -> Iterator[Panel]:
        """Those in folded rows too."""
        for panel in self.panels:
            yield panel
            yield from panel.panels

    @property
    def pictures(self) -> Iterator[Panel]:
        """All panels but rows and texts."""
        return (panel for panel in self.all_panels if panel.is_picture)


def uid(datasource: DataSource | str | None) -> str:
    """How a data source is named, whichever way it is written."""
    return datasource.uid if isinstance(datasource, DataSource) else datasource or ""
