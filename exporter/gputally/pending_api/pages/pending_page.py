"""The page `/pending`: the reasons, the pods, then the workloads without pods; it needs no JavaScript."""

import base64
import hashlib
from typing import Final
from urllib.parse import urlencode

from gputally.files.html_template import html_template
from gputally.model.placement.pending_document import PENDING_PATH, PendingDocument
from gputally.model.placement.verdict import Reason
from gputally.model.placement.why_document import WHY_PATH
from gputally.pending_api.pending_request import PENDING_FILTERS, PendingRequest
from gputally.pending_api.words.amount_words import count_words
from gputally.pending_api.words.duration_words import duration

REFRESH_SECONDS: Final = 30
_STYLE: Final = """\
:root{color-scheme:light dark;--line:#8886}
body{font:16px/1.5 system-ui,sans-serif;max-width:80rem;margin:2rem auto;padding:0 1rem}
form{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:end}label{display:grid;font-size:.9rem}
input,select,button{font:inherit}input{width:9rem}
table{border-collapse:collapse;width:100%;margin:1rem 0 2rem}caption{text-align:left;font-weight:600}
th,td{text-align:left;vertical-align:top;padding:.2rem .6rem;border-bottom:1px solid var(--line)}
tbody th{font-weight:400}.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
:focus-visible{outline:2px solid}@media print{form,footer{display:none}tr{break-inside:avoid}}"""
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
PENDING_HEADERS: Final = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
}
"""Nothing on the page but its own style may load or run."""


def pending_page(document: PendingDocument, asked: PendingRequest) -> str:
    """The page as HTML. Of a filter with several values, the form shows the first."""
    form = {name: min(asked.filters.get(name, {""})) for name in PENDING_FILTERS}
    return html_template("gputally.pending_api", "pending.html").render(
        style=_STYLE,
        refresh=REFRESH_SECONDS,
        document=document,
        form=form,
        reasons=tuple(Reason),
        gpus=sum(each.gpus for each in document.reasons),
        unpriced=sum(each.unpriced_gpus for each in document.reasons),
        json_link=f"{PENDING_PATH}?{urlencode({name: value for name, value in form.items() if value})}".rstrip("?"),
        count=count_words,
        age=lambda since: duration((document.at - since).total_seconds()),
        missing=sum(each.pods for each in document.workload_reasons),
        missing_gpus=sum(each.gpus for each in document.workload_reasons),
        why_job=lambda each: f"{WHY_PATH}?{urlencode({'namespace': each.namespace, 'job': each.job})}",
        why=lambda pod: f"{WHY_PATH}?{urlencode({'namespace': pod.namespace, 'pod': pod.pod})}",
    )
