"""The user-facing pages and their contents."""

import re
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "gputally"
PAGES = sorted((ROOT / "README.md", ROOT / "CHANGELOG.md", CHART / "README.md", *(ROOT / "docs").rglob("*.md")))
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text() for page in PAGES}


def blocks(text: str, language: str) -> list[str]:
    """The contents of the fenced blocks of that language, also of those in lists."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    return [dedent(content) for _, content in found]


def commands(text: str, program: str) -> list[str]:
    """The arguments after `$ PROGRAM ` in console blocks, without comments and redirections."""
    lines = (line for block in blocks(text, "console") for line in block.splitlines())
    return [re.split(" #| [<>] ", line[len(program) + 3 :])[0] for line in lines if line.startswith(f"$ {program} ")]


def table(text: str, heading: str) -> list[list[str]]:
    """The rows of the table whose first column has this heading, without the header row and backticks."""
    _, head, rest = text.partition(f"| {heading} |")
    assert head, f"there is no table with a column {heading}"
    rows = re.match(r"[^\n]*\n\|[- |]+\|\n((?:\|.*\|\n)*)", rest)
    assert rows, f"the table under {heading} is broken"
    return [[cell.strip().replace("`", "") for cell in row.strip("|").split(" | ")] for row in rows[1].splitlines()]
