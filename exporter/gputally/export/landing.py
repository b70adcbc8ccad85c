"""The page at `/`: describes the process and links to its other pages."""

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from typing import Final

LINKS: Final = (
    ("/metrics", "metrics in the Prometheus format"),
    ("/healthz", "whether the process is alive"),
    ("/readyz", "whether all parts are ready, and which are not"),
)
"""(path, meaning) of the pages that every process serves."""

_STYLE: Final = """\
body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}
dt{font-weight:600}dd{margin:0 0 .5rem}footer{margin-top:2rem;opacity:.7}"""
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

HEADERS: Final = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
"""Nothing on the page but its own style may load or run."""


def page(*, title: str, about: str, version: str, links: Iterable[tuple[str, str]] = ()) -> str:
    """The page as HTML; all arguments are plain text, `links` come after the common ones."""
    entries = "\n".join(
        f'<dt><a href="{escape(path)}">{escape(path)}</a></dt><dd>{escape(meaning)}</dd>'
        for path, meaning in (*LINKS, *links)
    )
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<p>{escape(about)}</p>
<dl>
{entries}
</dl>
</main>
<footer>Version {escape(version)}</footer>
</body>
</html>
"""
