"""The pages about waiting pods, `/pending` and `/pending/why`, which need no JavaScript."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlencode

from gputally.answers.answer_words import (
    OCCUPANT_HEADS,
    OCCUPANT_NUMBERS,
    bound_words,
    first_step,
    headline_words,
    job_preempted_words,
    next_facts,
    nodes_words,
    occupant_cells,
    pod_facts,
    quota_line,
    similar_words,
    unaccounted_words,
    wait_facts,
)
from gputally.answers.help_words import effect_words, who_words
from gputally.formatting.amounts import count_words, pod_words
from gputally.formatting.html_pages import html_template
from gputally.formatting.times import duration
from gputally.model.api.paths import PENDING_PATH, WHY_PATH
from gputally.model.api.pending import PendingDocument
from gputally.model.api.why import WhyAnswer, WhyDocument
from gputally.model.verdicts import Reason
from gputally.questions.parameter import texts_of
from gputally.questions.pending import PENDING_FILTERS, Pending
from gputally.questions.why import Why

WHY_PAGE_PATH: Final = "/pending/why"
REFRESH_SECONDS: Final = 30


def why_page(document: WhyDocument, asked: Why) -> str:
    """The page as HTML."""
    return html_template("gputally.web", "why.html").render(
        document=document,
        subject=asked.subject,
        headline=lambda answer: headline_words(answer, document.currency),
        facts=lambda answer: list(_facts(answer, document)),
        heads=OCCUPANT_HEADS,
        numbers=OCCUPANT_NUMBERS,
        cells=lambda occupant: occupant_cells(occupant, document.currency),
        who=who_words,
        effect=lambda change: effect_words(change, document.currency),
        bound=bound_words(document) if document.answers else "",
        unaccounted=[unaccounted_words(note) for note in document.unaccounted],
        preempted=list(job_preempted_words(document)),
        quota=quota_line,
        step=lambda lacks: first_step(lacks.reason, has_suggestions=bool(lacks.helps or lacks.job_changes)),
        age=lambda since: duration((document.at - since).total_seconds()),
        json_link=f"{WHY_PATH}?{urlencode(texts_of(asked), doseq=True)}",
    )


def _facts(answer: WhyAnswer, document: WhyDocument) -> Iterator[tuple[str, str]]:
    """The lines of the answer that are no tables, with their headings."""
    yield from pod_facts(answer, document)
    yield from (("Blocked by", each.text) for each in answer.obstacles)
    if nodes := nodes_words(answer):
        yield "Nodes", nodes
    yield from wait_facts(answer, document)
    if similar := similar_words(answer):
        yield "Others like it", similar
    if answer.others_waiting:
        yield "Others waiting", f"{pod_words(answer.others_waiting)} of the same or a higher priority for such GPUs"
    yield from next_facts(answer)


def pending_page(document: PendingDocument, asked: Pending) -> str:
    """The page as HTML. Of a filter with several values, the form shows the first."""
    form = {name: min(asked.filters.get(name, {""})) for name in PENDING_FILTERS}
    return html_template("gputally.web", "pending.html").render(
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
