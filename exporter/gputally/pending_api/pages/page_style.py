"""The style of the pages about waiting pods, and the headers that let nothing else load or run."""

import base64
import hashlib
from typing import Final

STYLE: Final = """\
:root{color-scheme:light dark;--line:#8886}
body{font:16px/1.5 system-ui,sans-serif;max-width:80rem;margin:2rem auto;padding:0 1rem}
form{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:end}label{display:grid;font-size:.9rem}
input,select,button{font:inherit}input{width:9rem}
table{border-collapse:collapse;width:100%;margin:1rem 0 2rem}caption{text-align:left;font-weight:600}
th,td{text-align:left;vertical-align:top;padding:.2rem .6rem;border-bottom:1px solid var(--line)}
tbody th{font-weight:400}.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
:focus-visible{outline:2px solid}@media print{form,footer{display:none}tr{break-inside:avoid}}"""
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HEADERS: Final = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
}
"""Nothing on the page but its own style may load or run."""
