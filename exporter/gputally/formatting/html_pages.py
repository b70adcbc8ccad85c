"""HTML pages: from a template with a style and headers that let nothing else load, or as text that others continue."""

import base64
import hashlib
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Final

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
"""All pages and files have it."""
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


def page_start(title: str, *, refresh_s: int | None = None) -> str:
    """The beginning of a page with its heading; it is loaded again after `refresh_s` seconds, if given."""
    refresh = f'<meta http-equiv="refresh" content="{refresh_s}">\n' if refresh_s else ""
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
{refresh}<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
"""


PAGE_END: Final = "</main>\n</body>\n</html>\n"
