"""A canvas with pixel coordinates from the top left corner."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Polygon, Rectangle
from matplotlib.textpath import text_to_path

from hack.pictures import theme

FONT: Final = "DejaVu Sans"
"""Bundled with matplotlib, so that pictures are identical on all machines."""
LOOK: Final = {**mpl.rcParamsDefault, "text.hinting": "none"}
"""Ignores the user's matplotlibrc; without hinting, text has exactly its measured width."""
_DOTS_PER_INCH: Final = 72
"""At this resolution a point is a pixel."""
_HAIR: Final = 0.01
"""Prevents rounding down when a size is converted from pixels to inches and back."""
_ELLIPSIS: Final = "…"

Point = tuple[float, float]


class Box(NamedTuple):
    """A rectangle."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """The bottom edge."""
        return self.top + self.height

    @property
    def center(self) -> Point:
        """The center point."""
        return self.left + self.width / 2, self.top + self.height / 2

    def inset(self, *, left: float = 0, top: float = 0, right: float = 0, bottom: float = 0) -> "Box":
        """The box, smaller by these amounts at each edge; sizes never become negative."""
        width, height = self.width - left - right, self.height - top - bottom
        return Box(self.left + left, self.top + top, max(width, 0), max(height, 0))

    def cells(self, columns: int, rows: int, *, gap: float) -> list["Box"]:
        """A grid of equal cells, row by row."""
        width, height = (self.width - gap * (columns - 1)) / columns, (self.height - gap * (rows - 1)) / rows
        return [
            Box(self.left + column * (width + gap), self.top + row * (height + gap), width, height)
            for row in range(rows)
            for column in range(columns)
        ]


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The width of a line of text, in pixels."""
    width, _, _ = text_to_path.get_text_width_height_descent(text, _font(size, bold=bold), ismath=False)
    return float(width)


def shortened(text: str, size: float, *, width: float) -> str:
    """The text, cut to the width with an ellipsis if it is too long."""
    if text_width(text, size) <= width:
        return text
    kept = next((end for end in range(len(text) - 1, 0, -1) if text_width(text[:end] + _ELLIPSIS, size) <= width), 0)
    return text[:kept].rstrip() + _ELLIPSIS


def _font(size: float, *, bold: bool) -> FontProperties:
    return FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")


class Ink(NamedTuple):
    """Size, colour and weight of text."""

    size: float = theme.TEXT_SIZE
    color: str = theme.TEXT
    bold: bool = False


Align = Literal["left", "center", "right"]
TEXT: Final = Ink()
FAINT: Final = Ink(theme.SMALL_SIZE, theme.FAINT)


class Canvas:
    """A picture of `width` by `height` pixels, empty at first."""

    def __init__(self, width: int, height: int) -> None:
        inches = ((width + _HAIR) / _DOTS_PER_INCH, (height + _HAIR) / _DOTS_PER_INCH)
        self._figure = Figure(figsize=inches, dpi=_DOTS_PER_INCH, facecolor=theme.BACKGROUND)
        self._axes = self._figure.add_axes((0, 0, 1, 1))
        self._order = count()
        """The z-order: later elements cover earlier ones."""
        self._axes.set_axis_off()
        self._axes.set_xlim(0, width)
        self._axes.set_ylim(height, 0)

    def rectangle(self, box: Box, color: str, *, alpha: float = 1, edge: str = "none") -> None:
        """Draw a filled rectangle, with a thin outline if `edge` is a colour."""
        look: dict[str, Any] = {"facecolor": color, "edgecolor": edge, "linewidth": 1, "antialiased": False}
        self._add(Rectangle((box.left, box.top), box.width, box.height, alpha=alpha, **look))

    def line(
        self, points: Iterable[Point], color: str, width: float = 1, *, dashed: bool = False, clip: Box | None = None
    ) -> None:
        """Draw a line through the points."""
        xs, ys = zip(*points, strict=True)
        style: Any = (0, (8, 6)) if dashed else "solid"
        self._add(Line2D(xs, ys, color=color, linewidth=width, linestyle=style, solid_joinstyle="round"), clip)

    def circle(self, center: Point, radius: float, *, color: str = "none", edge: str = "none") -> None:
        """Draw a circle filled with `color`, with an outline in the colour `edge`."""
        self._add(Circle(center, radius, facecolor=color, edgecolor=edge, linewidth=1.2 if edge != "none" else 0))

    def polygon(self, points: Sequence[Point], color: str, *, alpha: float = 1, clip: Box | None = None) -> None:
        """Draw a filled polygon."""
        self._add(Polygon(points, closed=True, facecolor=color, alpha=alpha, edgecolor="none", linewidth=0), clip)

    def text(self, at: Point, text: str, ink: Ink = TEXT, *, align: Align = "left") -> None:
        """Write one line of text, vertically centered at the point."""
        style: dict[str, Any] = {"fontproperties": _font(ink.size, bold=ink.bold), "color": ink.color, "ha": align}
        style |= {"va": "center_baseline", "parse_math": False}  # a dollar sign is currency, not math
        self._axes.text(*at, text, zorder=next(self._order), **style)

    def texts(self) -> list[str]:
        """All texts on the picture."""
        return [text.get_text() for text in self._axes.texts]

    def save(self, path: Path) -> None:
        """Write a PNG without time or program metadata, so that equal pictures have equal bytes."""
        with mpl.rc_context(LOOK):
            self._figure.savefig(path, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})

    def _add(self, artist: Artist, clip: Box | None = None) -> None:
        artist.set_zorder(next(self._order))
        self._axes.add_artist(artist)
        if clip:
            artist.set_clip_path(Rectangle(clip[:2], clip.width, clip.height, transform=self._axes.transData))
        else:
            artist.set_clip_on(False)
