"""HTML pages: from a template with a style and headers that let nothing else load, or as one file of tables."""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from jinja2 import Template

STYLE: Final = """\
:root{color-scheme:light dark;--good:#1a7f37;--bad:#cf222e;--warn:#9a6700;--info:#0969da;--bar:#2f6feb;--line:#8886}
@media(prefers-color-scheme:dark){:root{--good:#3fb950;--bad:#f85149;--warn:#d29922;--info:#58a6ff}}
body{font:16px/1.5 system-ui,sans-serif;max-width:80rem;margin:2rem auto;padding:0 1rem}
form{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:end}label{display:grid;font-size:.9rem}
input,select,button{font:inherit}input{width:9rem}input[type=checkbox]{width:auto}
.state,.problem,article{border-left:.4rem solid var(--info);padding:.1rem 1rem;margin:1rem 0}
.ready{border-color:var(--good)}.waiting,.problem,.error{border-color:var(--bad)}.warning{border-color:var(--warn)}
table{border-collapse:collapse;width:100%;margin:1rem 0 2rem}caption{text-align:left;font-weight:600}
th,td{text-align:left;vertical-align:top;padding:.2rem .6rem;border-bottom:1px solid var(--line)}
tbody th{font-weight:400}tfoot{font-weight:600}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
svg{width:12rem;height:.9rem;print-color-adjust:exact}rect{fill:var(--bar)}.loss{fill:var(--line)}
h3{font-size:1rem;margin:.3rem 0}dt{font-weight:600}dd{margin:0 0 .5rem}
article dl{display:grid;grid-template-columns:max-content auto;gap:.1rem 1rem;margin:.3rem 0}article dd{margin:0}
footer{margin-top:2rem}:focus-visible{outline:2px solid}
@media print{body{max-width:none;margin:0;font-size:10pt}form,footer{display:none}article,tr{break-inside:avoid}}"""
"""That of all pages and files."""
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
PAGE_HEADERS: Final = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
}
"""Nothing on a page but its own style may load or run."""


@cache
def html_template(package: str, name: str) -> "Template":
    """The template `name` of a Python package; whatever it shows is escaped, and a name without a value is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - 2 MiB, once somebody reads a page

    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["style"] = STYLE
    return environment.get_template(name)


class HtmlTable(NamedTuple):
    """A table. `shares` (percent) are the lengths of the bars of its rows but totals; without them, the last is one.

    The bars begin at `offsets` (percent), if given. The `caption` is above the table, the `note` below.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[object]]
    shares: Sequence[Decimal] = ()
    offsets: Sequence[Decimal] = ()
    caption: str = ""
    note: str = ""


def tables_page(*, title: str, about: str, tables: Iterable[HtmlTable], notes: Iterable[str] = ()) -> str:
    """The file, with `notes` below the tables; all arguments are plain text."""
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>{escape(about)}</p>
{"".join(map(_table, tables))}{"".join(f"<p>{escape(note)}</p>{chr(10)}" for note in notes)}</body>
</html>
"""


def _table(table: HtmlTable) -> str:
    numeric = [isinstance(cell, Decimal | int) for cell in table.rows[-1]]
    heads = "".join(
        f'<th scope="col"{_class(is_number)}>{escape(text)}</th>'
        for text, is_number in zip(table.head, numeric, strict=True)
    )
    bar = "<th></th>" if table.shares else ""
    rows = list(_rows(table, numeric))
    count = len(table.shares) if table.shares else len(rows) - 1
    body = "".join(rows[:count])
    foot = f"<tfoot>\n{''.join(rows[count:])}</tfoot>\n" if rows[count:] else ""
    caption = f"<caption>{escape(table.caption)}</caption>\n" if table.caption else ""
    note = f"<p>{escape(table.note)}</p>\n" if table.note else ""
    return f"<table>\n{caption}<thead><tr>{heads}{bar}</tr></thead>\n<tbody>\n{body}</tbody>\n{foot}</table>\n{note}"


def _rows(table: HtmlTable, numeric: Sequence[bool]) -> Iterator[str]:
    for place, row in enumerate(table.rows):
        cells = "".join(
            f"<td{_class(is_number)}>{_text(cell)}</td>" for cell, is_number in zip(row, numeric, strict=True)
        )
        yield f"<tr>{cells}{_bar(table, place)}</tr>\n"


def _class(is_number: bool) -> str:  # noqa: FBT001 - a predicate of a column
    return ' class="number"' if is_number else ""


def _text(cell: object) -> str:
    return "" if cell is None else escape(str(cell))


def _bar(table: HtmlTable, place: int) -> str:
    if not table.shares:
        return ""
    if place >= len(table.shares):
        return "<td></td>"
    begin = f' x="{table.offsets[place]}"' if table.offsets else ""
    bar = f'<rect{begin} width="{max(table.shares[place], Decimal())}" height="8"/>'
    return f'<td><svg viewBox="0 0 100 8" preserveAspectRatio="none">{bar}</svg></td>'
