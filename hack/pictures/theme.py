"""Grafana's dark theme: its colours and the sizes of its grid, in pixels."""

from collections.abc import Sequence
from typing import Final

from matplotlib.colors import is_color_like, to_hex

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

TITLE_SIZE: Final = 15.0
TEXT_SIZE: Final = 13.0
SMALL_SIZE: Final = 12.0

_HUES: Final = {
    "red": ("#FFA6B0", "#FF7383", "#F2495C", "#E02F44", "#C4162A"),
    "orange": ("#FFCB7D", "#FFB357", "#FF9830", "#FF780A", "#FA6400"),
    "yellow": ("#FFF899", "#FFEE52", "#FADE2A", "#F2CC0C", "#E0B400"),
    "green": ("#C8F2C2", "#96D98D", "#73BF69", "#56A64B", "#37872D"),
    "blue": ("#C0D8FF", "#8AB8FF", "#5794F2", "#3274D9", "#1F60C4"),
    "purple": ("#DEB6F2", "#CA95E5", "#B877D9", "#A352CC", "#8F3BB8"),
}
_SHADES: Final = ("super-light-", "light-", "", "semi-dark-", "dark-")
NAMED: Final = {
    **{f"{shade}{hue}": value for hue, values in _HUES.items() for shade, value in zip(_SHADES, values, strict=True)},
    "text": TEXT,
    "transparent": "#00000000",
    "panel-bg": PANEL,
    "gray": "#808080",
    "grey": "#808080",
    "white": "#ffffff",
    "black": "#000000",
}
CLASSIC: Final = tuple(
    NAMED[f"{shade}{hue}"]
    for shade in ("", "dark-", "super-light-")
    for hue in ("green", "yellow", "blue", "orange", "red", "purple")
)
"""In the order in which series get them."""
CONTINUOUS: Final = {
    "GrYlRd": ("green", "yellow", "red"),
    "RdYlGr": ("red", "yellow", "green"),
    "BlYlRd": ("dark-blue", "super-light-yellow", "dark-red"),
    "YlRd": ("super-light-yellow", "dark-red"),
    "BlPu": ("dark-blue", "purple"),
    "YlBl": ("super-light-yellow", "dark-blue"),
    **{f"{hue}s": ("panel-bg", f"dark-{hue}") for hue in ("blue", "red", "green", "purple")},
}


_LIGHT: Final = 140
"""Found by eye: white text stays legible on Grafana's semi-dark hues, but not on the plain ones."""


def named(color: str) -> str:
    """As `#rrggbb`; what is neither a name of Grafana's nor of the web's is shown as text is."""
    return NAMED.get(color) or (to_hex(color) if is_color_like(color) else TEXT)


def blended(colors: Sequence[str], share: float) -> str:
    """The colour at that share, 0 to 1, of the way through `colors` (as `#rrggbb`)."""
    way = min(max(share, 0.0), 1.0) * (len(colors) - 1)
    before = min(int(way), len(colors) - 2)
    first, second = _channels(colors[before]), _channels(colors[before + 1])
    mixed = (round(a + (b - a) * (way - before)) for a, b in zip(first, second, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _channels(color: str) -> tuple[int, ...]:
    return tuple(int(color[place : place + 2], 16) for place in (1, 3, 5))


def ink_on(color: str) -> str:
    """The colour of legible text on it. Source: ITU-R BT.601, luma."""
    red, green, blue = _channels(color)
    return BACKGROUND if (299 * red + 587 * green + 114 * blue) / 1000 > _LIGHT else NAMED["white"]
