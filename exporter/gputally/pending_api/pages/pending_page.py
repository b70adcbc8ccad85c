"""The page `/pending`: the reasons, the pods, then the workloads without pods; it needs no JavaScript."""

from typing import Final
from urllib.parse import urlencode

from gputally.files.html_template import html_template
from gputally.model.api.pending import PENDING_PATH, PendingDocument
from gputally.model.verdicts import Reason
from gputally.pending_api.pages.page_style import STYLE
from gputally.pending_api.pages.why_page import WHY_PAGE_PATH
from gputally.pending_api.pending_request import PENDING_FILTERS, PendingRequest
from gputally.pending_api.words.amount_words import count_words
from gputally.pending_api.words.duration_words import duration

REFRESH_SECONDS: Final = 30


def pending_page(document: PendingDocument, asked: PendingRequest) -> str:
    """The page as HTML. Of a filter with several values, the form shows the first."""
    form = {name: min(asked.filters.get(name, {""})) for name in PENDING_FILTERS}
    return html_template("gputally.pending_api", "pending.html").render(
        style=STYLE,
        refresh=REFRESH_SECONDS,
        document=document,
        form=form,
        reasons=tuple(Reason),
        gpus=sum(each.gpus for each in document.reasons),
        unpriced=sum(each.unpriced_gpus for each in document.reasons),
        uncharged=sum(each.uncharged_pods for each in document.reasons),
        missing_uncharged=sum(each.uncharged_pods for each in document.workload_reasons),
        json_link=f"{PENDING_PATH}?{urlencode({name: value for name, value in form.items() if value})}".rstrip("?"),
        count=count_words,
        age=lambda since: duration((document.at - since).total_seconds()),
        missing=sum(each.pods for each in document.workload_reasons),
        missing_gpus=sum(each.gpus for each in document.workload_reasons),
        why_job=lambda each: _page_of(each.namespace, job=each.job),
        why=lambda pod: _page_of(pod.namespace, pod=pod.pod),
        why_named=lambda name: _page_of(name.partition("/")[0], pod=name.partition("/")[2]),
    )


def _page_of(namespace: str, **named: str) -> str:
    """The address of the page about a pod or a job."""
    return f"{WHY_PAGE_PATH}?{urlencode({'namespace': namespace, **named})}"
