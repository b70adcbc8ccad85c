"""Markdown, as plain text with headings and lists."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from hack.pictures.canvas import Box, Canvas, Ink, text_width
from hack.pictures.frames import Filled

_HEADINGS: Final = {1: 22.0, 2: 18.0, 3: 16.0}
_BODY: Final = 14.0
_LEADING: Final = 1.5
_INDENT: Final = 18.0
_MARKS: Final = re.compile(
    r"!?\[([^\]]*)\]\([^)]*\)|\*\*(.+?)\*\*|__(.+?)__|`([^`]+)`|<[^>]+>|(?<!\w)[*_](\S.*?)[*_](?!\w)"
)


class Block(NamedTuple):
    """A paragraph, heading or item of a list, without its marks; nothing is an empty line."""

    text: str
    size: float = _BODY
    bold: bool = False
    bullet: str = ""


def draw_text(canvas: Canvas, box: Box, filled: Filled) -> None:
    """The panel's content, as far as it has room."""
    top = box.top
    for block in blocks(filled.panel.options.content):
        indent = _INDENT if block.bullet else 0.0
        for number, line in enumerate(_wrapped(block, box.width - indent)):
            height = block.size * _LEADING
            if top + height > box.bottom + 4:
                return
            middle = top + height / 2
            if block.bullet and number == 0:
                canvas.text((box.left + 2, middle), block.bullet, Ink(block.size))
            canvas.text((box.left + indent, middle), line, Ink(block.size, bold=block.bold))
            top += height
        top += block.size * (0.4 if block.text else 0.1)


def blocks(markdown: str) -> Iterator[Block]:
    """What an empty line, a heading or a list sets apart; lines of a paragraph are joined."""
    paragraph: list[str] = []
    for line in [*markdown.splitlines(), ""]:
        heading = re.match(r"(#+)\s+(.*)", line)
        item = re.match(r"\s*([-*+]|\d+\.)\s+(.*)", line)
        if (heading or item or not line.strip()) and paragraph:
            yield Block(plain(" ".join(paragraph)))
            paragraph = []
        if heading:
            yield Block(plain(heading[2]), _HEADINGS.get(len(heading[1]), _BODY), bold=True)
        elif item:
            yield Block(plain(item[2]), bullet=item[1] if item[1][0].isdigit() else "•")
        elif line.strip():
            paragraph.append(line.strip())


def plain(text: str) -> str:
    """Without emphasis, code marks, tags and the addresses of links."""
    return _MARKS.sub(lambda found: next((group for group in found.groups() if group), ""), text)


def _wrapped(block: Block, width: float) -> Iterator[str]:
    line = ""
    for word in block.text.split():
        longer = f"{line} {word}".strip()
        if line and text_width(longer, block.size, bold=block.bold) > width:
            yield line
            longer = word
        line = longer
    yield line
