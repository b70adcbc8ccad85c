"""The page at `/`: whether the process is ready, its state in tables, and links to its other pages."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NamedTuple

from gputally.formatting.html_pages import page_start

REFRESH_SECONDS: Final = 30
LINKS: Final = (
    ("/metrics", "metrics in the Prometheus format"),
    ("/healthz", "whether the process is alive"),
    ("/readyz", "whether all parts are ready, and which are not"),
)
"""(path, meaning) of the pages that every process serves."""
DOCUMENTATION: Final = ("https://github.com/gputally/gputally/tree/main/docs", "documentation, dashboards and runbooks")


class StatusTable(NamedTuple):
    """A table with plain texts as cells. Columns from the second on are numbers if `numbers` says so."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: bool = False


def page(
    *,
    title: str,
    about: str,
    version: str,
    missing: Sequence[str] = (),
    sections: Iterable[StatusTable] = (),
    links: Iterable[tuple[str, str]] = (),
) -> str:
    """The page as HTML; all arguments are plain text. `missing` is what the process waits for, none if it is ready."""
    entries = "\n".join(
        f'<dt><a href="{escape(path)}">{escape(path)}</a></dt><dd>{escape(meaning)}</dd>'
        for path, meaning in (*LINKS, *links, DOCUMENTATION)
    )
    return f"""\
{page_start(title, refresh_s=REFRESH_SECONDS)}\
<p>{escape(about)}</p>
{_state(missing)}
{"".join(map(_table, sections))}<h2>Pages</h2>
<dl>
{entries}
</dl>
</main>
<footer>Version {escape(version)}. This page reloads every {REFRESH_SECONDS} seconds.</footer>
</body>
</html>
"""


def _state(missing: Sequence[str]) -> str:
    if not missing:
        return '<p class="state ready" role="status">Ready</p>'
    items = "".join(f"<li>{escape(each)}</li>" for each in missing)
    return f'<div class="state waiting" role="status"><p>Not ready:</p><ul>{items}</ul></div>'


def _table(section: StatusTable) -> str:
    classes = ["", *[' class="number"' if section.numbers else ""] * (len(section.heads) - 1)]
    heads = "".join(
        f'<th scope="col"{style}>{escape(head)}</th>' for head, style in zip(section.heads, classes, strict=True)
    )
    rows = "".join(f"<tr>{_cells(row, classes)}</tr>\n" for row in section.rows)
    empty = f'<tr><td colspan="{len(section.heads)}">none</td></tr>\n'
    caption = f"<caption>{escape(section.title)}</caption>"
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>\n{rows or empty}</tbody></table>\n"


def _cells(row: Sequence[str], classes: Sequence[str]) -> str:
    first, *others = zip(row, classes, strict=True)
    cells = "".join(f"<td{style}>{escape(cell)}</td>" for cell, style in others)
    return f'<th scope="row">{escape(first[0])}</th>{cells}'
