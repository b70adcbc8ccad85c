"""Grafana's dark theme: colours, and grid sizes in pixels."""

from collections.abc import Mapping
from typing import Final, Literal

BACKGROUND: Final = "#111217"
PANEL: Final = "#181b1f"
BORDER: Final = "#2b2d33"
GRID: Final = "#2a2c32"
TEXT: Final = "#ccccdc"
FAINT: Final = "#8e8e9e"
LINK: Final = "#6e9fff"
FAILURE: Final = "#ff5286"
CELL: Final = "#22252b"

WIDTH: Final = 1600
COLUMNS: Final = 24
ROW: Final = 30
GAP: Final = 8
MARGIN: Final = 16
COLUMN: Final = (WIDTH - 2 * MARGIN + GAP) / COLUMNS

TITLE_SIZE: Final = 15.0
TEXT_SIZE: Final = 13.0
SMALL_SIZE: Final = 12.0

Color = Literal["green", "yellow", "blue", "orange", "red", "purple", "text"]
NAMED: Final[Mapping[Color, str]] = {
    "green": "#73BF69",
    "yellow": "#FADE2A",
    "blue": "#5794F2",
    "orange": "#FF9830",
    "red": "#F2495C",
    "purple": "#B877D9",
    "text": TEXT,
}
CLASSIC: Final = (
    *("#73BF69", "#FADE2A", "#5794F2", "#FF9830", "#F2495C", "#B877D9"),
    *("#37872D", "#E0B400", "#1F60C4", "#FA6400", "#C4162A", "#8F3BB8"),
    *("#C8F2C2", "#FFF899", "#C0D8FF", "#FFCB7D", "#FFA6B0", "#DEB6F2"),
)
"""The classic palette, in the order of series."""


def panel_width(columns: int) -> float:
    """The width in pixels of a panel that spans `columns`."""
    return columns * COLUMN - GAP
