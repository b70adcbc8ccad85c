"""The values of dashboard panels, queried as Grafana does."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from hack.pictures import dashboard
from hack.pictures.dashboard import Dashboard, Panel
from hack.pictures.frames import Filled, Frame, Source, run
from hack.pictures.variables import Window, chosen

GENERATED: Final = Path(__file__).parents[2] / "dashboards" / "generated"


class Asked(NamedTuple):
    """A query of a panel and its result; `ref` is its letter."""

    board: str
    panel: str
    ref: str
    frame: Frame

    @property
    def key(self) -> tuple[str, str, str]:
        return self.board, self.panel, self.ref

    @property
    def has_data(self) -> bool:
        """Whether any series has a number."""
        return any(not math.isnan(value) for series in self.frame.series for _, value in series.points)


@dataclass(frozen=True)
class Boards:
    """All dashboards by name, as `make generate` writes them."""

    by_name: Mapping[str, Dashboard]

    def ask_all(self, api: Source, window: Window) -> Iterator[Asked]:
        """Run every query of every panel, with the default values of variables."""
        for name, board in self.by_name.items():
            for panel in board.all_panels():
                for frame in self._run(name, panel, api, window).frames:
                    yield Asked(name, panel.title, frame.target.ref_id, frame)

    def ask(self, api: Source, name: str, title: str, window: Window, *, column: str = "") -> Frame:
        """Run the query of the panel with that title, or of the column with that heading."""
        [panel] = [panel for panel in self.by_name[name].all_panels() if panel.title == title]
        frames = self._run(name, panel, api, window).frames
        [frame] = [each for each in frames if not column or heads(panel)[each.target.ref_id] == column]
        assert not frame.error, frame.error
        return frame

    def values(
        self, api: Source, name: str, title: str, window: Window, *, column: str = "", by: tuple[str, ...] = ()
    ) -> dict[tuple[str, ...], float]:
        """The last values by these labels, which must be unique for each series."""
        series = self.ask(api, name, title, window, column=column).series
        found = {tuple(each.labels.get(label, "") for label in by): each.last for each in series}
        assert len(found) == len(series), f"{by} do not distinguish the series of {title}"
        return found

    def _run(self, name: str, panel: Panel, api: Source, window: Window) -> Filled:
        variables = chosen(self.by_name[name].templating.list, {})
        return run(panel, api, window=window, variables=variables)


def heads(panel: Panel) -> dict[str, str]:
    """The headings of a table's columns by the letter of their query."""
    [names] = [each.options["renameByName"] for each in panel.transformations if each.id == "organize"]
    if "Value" in names:
        return {"A": names["Value"]}
    return {name.removeprefix("Value #"): head for name, head in names.items() if name.startswith("Value #")}


def boards() -> Boards:
    return Boards({path.stem: dashboard.read(path) for path in sorted(GENERATED.glob("*.json"))})
